package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/winlab-dev/winlab/sim/real/programs/relay"
)

// The web server of the documents (kubernetes.io, "Windows containers in Kubernetes"), as
// its pod gets it: Kubernetes makes $$ into $.
const documentsServer = `<#code used from https://gist.github.com/19WAS85/5424431#> ; $listener = New-Object System.Net.HttpListener ; $listener.Prefixes.Add('http://*:PORT/') ; $listener.Start() ; $callerCounts = @{} ; Write-Host('Listening at http://*:80/') ; while ($listener.IsListening) { ;$context = $listener.GetContext() ;$requestUrl = $context.Request.Url ;$clientIP = $context.Request.RemoteEndPoint.Address ;$response = $context.Response ;Write-Host '' ;Write-Host('> {0}' -f $requestUrl) ;  ;$count = 1 ;$k=$callerCounts.Get_Item($clientIP) ;if ($k -ne $null) { $count += $k } ;$callerCounts.Set_Item($clientIP, $count) ;$ip=(Get-NetAdapter | Get-NetIpAddress); $header='<html><body><H1>Windows Container Web Server</H1>' ;$callerCountsString='' ;$callerCounts.Keys | % { $callerCountsString+='<p>IP {0} callerCount {1} ' -f $ip[1].IPAddress,$callerCounts.Item($_) } ;$footer='</body></html>' ;$content='{0}{1}{2}' -f $header,$callerCountsString,$footer ;Write-Output $content ;$buffer = [System.Text.Encoding]::UTF8.GetBytes($content) ;$response.ContentLength64 = $buffer.Length ;$response.OutputStream.Write($buffer, 0, $buffer.Length) ;$response.Close() ;$responseStatus = $response.StatusCode ;Write-Host('< {0}' -f $responseStatus)  } ;`

// A part of validation_script of test/e2e/windows/host_process.go.
const validation = `if (-not(Test-Path g)) {
	throw "Cannot find emptydir volume"
}
$c = Get-Content -Path g
if ($c -ne "some text") {
	Write-Output $c
	throw "Contents are not as expected"
}
# The following comparison is case insensitive.
if ("HOST" -ine "$(hostname)") {
	throw "NODE_NAME_TEST env var ($env:NODE_NAME_TEST) does not equal hostname"
}
Write-Output "SUCCESS"`

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestDocumentsWebServer(t *testing.T) {
	port := freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	ended := make(chan int)
	go func() {
		s := &system{in: strings.NewReader(""), out: &out, err: &errs, start: start, getenv: os.Getenv, addresses: relay.Resolve}
		ended <- powershell(ctx, s, []string{"-command", strings.ReplaceAll(documentsServer, "PORT", port)})
	}()
	var last string
	for n := 1; n <= 2; {
		res, err := http.Get("http://127.0.0.1:" + port + "/x")
		if err != nil {
			select {
			case code := <-ended:
				t.Fatalf("it has ended with %d: %s", code, errs.String())
			case <-time.After(5 * time.Millisecond):
			}
			continue
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if last = string(body); res.StatusCode != 200 || res.Header.Get("Server") != "Microsoft-HTTPAPI/2.0" ||
			!strings.Contains(last, fmt.Sprintf("callerCount %d ", n)) {
			t.Fatalf("%s %q %s", res.Status, last, errs.String())
		}
		n++
	}
	if !strings.HasPrefix(last, "<html><body><H1>Windows Container Web Server</H1><p>IP ") {
		t.Error(last)
	}
	stop()
	<-ended
	if text := out.String(); !strings.Contains(text, "Listening at http://*:80/\r\n") ||
		!strings.Contains(text, "> http://127.0.0.1:"+port+"/x\r\n") || !strings.Contains(text, "< 200\r\n") {
		t.Errorf("%q %q", text, errs.String())
	}
}

// What suites and documents give to powershell.exe (test/e2e/windows of Kubernetes 1.37
// among them), and what is refused.
func TestPowerShell(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("NODE_NAME_TEST", "win1")
	web := server(t)
	encode := func(s string) string {
		var raw []byte
		for _, u := range utf16.Encode([]rune(s)) {
			raw = append(raw, byte(u), byte(u>>8))
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	host, _ := os.Hostname()
	if err := os.WriteFile("validate.ps1", []byte(strings.ReplaceAll(validation, "HOST", host)), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("g", link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      []string
		out, errs string
		code      int
	}{
		{[]string{"-Command", "sleep -Seconds 0"}, "", "", 0},
		{[]string{"Start-Sleep", "0"}, "", "", 0},
		{[]string{"-Command", "Write-Host 'Hello'; sleep -Seconds 0"}, "Hello\r\n", "", 0},
		{[]string{"-c", "Set-content", "-Path", "f", "-V", "test"}, "", "", 0},
		{[]string{"-c", "Get-Content f"}, "test\r\n", "", 0},
		{[]string{"-c", "ls", "nosuch"}, "", "get-childitem : Cannot find path", 1},
		{[]string{"-c", "ls -Name"}, "f\r\nvalidate.ps1\r\n", "", 0},
		{[]string{"/c", `echo "some text" > g; cat g`}, "some text\r\n", "", 0},
		{[]string{"-Command", "echo 'This is a test file.' > h"}, "", "", 0},
		{[]string{"cat", "h"}, "This is a test file.\r\n", "", 0},
		{[]string{"-Command", `& {if ('` + host + `' -ine "$(hostname)") { exit -1 }}`}, "", "", 0},
		{[]string{"-Command", `& {if ('other' -ine "$(hostname)") { exit 7 }}`}, "", "", 7},
		{[]string{"-NoProfile", "-ExecutionPolicy", "Bypass", "-Command", "$x = 2; \"x is $x and ${x}; $env:NODE\""}, "x is 2 and 2; win1\r\n", "", 0},
		{[]string{"-EncodedCommand", encode("echo ü")}, "ü\r\n", "", 0},
		{[]string{"exit 3"}, "", "", 3},
		{[]string{"throw 'bad'"}, "", "bad\r\n", 1},
		{[]string{"Get-Unknown x | Format-Table"}, "", "winlab: powershell.exe here does not know Get-Unknown\r\n", 1},
		{[]string{"if (-not(Test-Path nosuch)) { 'none' }; if (-not $false) { 'not' }"}, "none\r\nnot\r\n", "", 0},
		{[]string{"whoami; findstr nothing g"}, "user manager\\containeruser\r\n", "", 1},
		{[]string{"(Invoke-WebRequest -UseBasicParsing -TimeoutSec 10 " + web.URL + "/a).Content"}, "GET /a  \r\n", "", 0},
		{[]string{"(iwr " + web.URL + " -UseBasicParsing).StatusCode"}, "200\r\n", "", 0},
		{[]string{"iwr http://nosuch/"}, "", "Invoke-WebRequest : The remote name could not be resolved: 'nosuch'\r\n", 1},
		{[]string{"iwr " + web.URL + "/missing"}, "", "Invoke-WebRequest : The remote server returned an error: (404) Not Found.\r\n", 1},
		{[]string{"nosuchprogram.exe"}, "", "nosuchprogram.exe : The term 'nosuchprogram.exe' is not recognized", 1},
		{[]string{"Get-Nothing; echo on"}, "on\r\n", "winlab: powershell.exe here does not know Get-Nothing\r\n", 0},
		{[]string{"/c", "$ErrorActionPreference = 'Stop'; (Get-Item -Force -LiteralPath " + link + ").LinkType"}, "SymbolicLink\r\n", "", 0},
		{[]string{"/c", "$ErrorActionPreference = 'Stop'; (Get-Item -Force -LiteralPath " + link + ").Target"}, "g\r\n", "", 0},
		{[]string{"/c", "$ErrorActionPreference = 'Stop'; (Get-Item -Force -LiteralPath g).LinkType; echo end"}, "end\r\n", "", 0},
		{[]string{"-File", "validate.ps1"}, "SUCCESS\r\n", "", 0},
		{[]string{"if ($env:NODE -ne 'WIN1') { throw 'other' } else { 'same' }"}, "same\r\n", "", 0},
		{[]string{"Get-ChildItem", "-Path", "$env:NODE\\no.exe"}, "", "get-childitem : Cannot find path", 1},
		{[]string{"echo on | Write-Host"}, "", "winlab: powershell.exe here pipes into programs, and not into write-host\r\n", 1},
		{[]string{"cat g | findstr some; cat g | findstr none"}, "some text\r\n", "", 1},
		// What is not known is refused before anything runs.
		{[]string{"echo on; $i = 0; while ($true) { $i++ }"}, "", "winlab: powershell.exe here cannot read the script", 1},
		{[]string{"echo on; 1..3 | % { $_ * 2 }"}, "", "winlab: powershell.exe here cannot read the script", 1},
		{[]string{"[int]'7' + 1"}, "", "winlab: powershell.exe here", 1},
		{[]string{"$l = New-Object System.Net.HttpListener; $l.Prefixes.Add('http://*:80/'); $l.GetContext(); exit 0"}, "",
			"winlab: powershell.exe here knows the HttpListener of Kubernetes' Windows guides only", 1},
		{[]string{"$ErrorActionPreference = 'Stop'; Get-Item nosuch; echo on"}, "", "get-item : Cannot find path", 1},
		{[]string{"$ErrorActionPreference = 'Stop'; Get-Nothing; echo on"}, "", "winlab: powershell.exe here does not know Get-Nothing\r\n", 1},
		{[]string{"cat nosuch -ErrorAction SilentlyContinue; 'on'"}, "on\r\n", "", 0},
		{[]string{"if ("}, "", "winlab: powershell.exe here cannot read the script", 1},
		{[]string{"-Nothing"}, "", "winlab: powershell.exe here does not know -nothing\r\n", 1},
		{[]string{"-File", "nosuch.ps1"}, "", "The argument 'nosuch.ps1'", 0},
	} {
		out, errs, code := try(t, "", append([]string{"powershell.exe"}, c.args...)...)
		if c.args[0] == "-File" && code != 0 {
			code = 0
		}
		if out != c.out || code != c.code || (c.errs == "") != (errs == "") ||
			!strings.HasPrefix(strings.ToLower(errs), strings.ToLower(c.errs)) {
			t.Errorf("%q: code %d\n%q\n%q\nwant %d\n%q\n%q", c.args, code, out, errs, c.code, c.out, c.errs)
		}
	}
	if out, _, code := try(t, "echo one\necho two\nexit 4\necho three\n", "powershell"); out != "one\r\ntwo\r\n" || code != 4 {
		t.Errorf("lines: %q %d", out, code)
	}
}

// A script that is nonsense is an error and no panic.
func FuzzPowerShell(f *testing.F) {
	f.Add(documentsServer)
	f.Add(strings.Repeat(`a "$(`, 100)) // each word is read once
	f.Add(strings.Repeat("(", 100000))
	for _, s := range []string{"", "$x = @{a=1}", "if (-not(a)) { throw \"$(b)\" } else { exit 3 }", "& { a | b }", "(a b).c",
		"a > b 2>&1", "if(1){}else{}"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		p := &psScript{ctx: context.Background(), s: &system{getenv: os.Getenv}, vars: map[string][]string{}, skip: true}
		_ = p.run(s)
	})
}

// TestBurn: the load of upstream's test of CPU limits runs until it is ended.
func TestBurn(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	script := "foreach ($loopnumber in 1..8) { Start-Job -ScriptBlock { $result = 1; foreach($mm in 1..2147483647)" +
		"{$res1=1;foreach($num in 1..2147483647){$res1=$mm*$num*1340371};$res1} } } ; get-job | wait-job"
	s := &system{in: strings.NewReader(""), out: io.Discard, err: io.Discard, getenv: os.Getenv}
	if code := powershell(ctx, s, []string{"-Command", script}); code != 1 || ctx.Err() == nil {
		t.Errorf("it ended with %d by itself", code)
	}
}
