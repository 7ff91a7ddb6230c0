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
// among them), and small forms of each part of the language.
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
		{[]string{"-c", "ls -Name"}, "f\r\n", "", 0},
		{[]string{"/c", `echo "some text" > g; cat g`}, "some text\r\n", "", 0},
		{[]string{"-Command", "echo 'This is a test file.' > h"}, "", "", 0},
		{[]string{"cat", "h"}, "This is a test file.\r\n", "", 0},
		{[]string{"-Command", `& {if ('` + host + `' -ine "$(hostname)") { exit -1 }}`}, "", "", 0},
		{[]string{"-Command", `& {if ('other' -ine "$(hostname)") { exit 7 }}`}, "", "", 7},
		{[]string{"-Command",
			"foreach ($loopnumber in 1..8) { Start-Job -ScriptBlock { $result = 1; foreach($mm in 1..3){$res1=1;foreach($num in 1..3){$res1=$mm*$num*1340371};$res1} } } ; get-job | wait-job"}, "Job1\r\nJob2\r\nJob3\r\nJob4\r\nJob5\r\nJob6\r\nJob7\r\nJob8\r\n", "", 0},
		{[]string{"-NoProfile", "-ExecutionPolicy", "Bypass", "-Command", "$x = 2; $x += 3; \"x is $x and $($x * 2) of ${x}; $env:NODE\""},
			"x is 5 and 10 of 5; win1\r\n", "", 0},
		{[]string{"-EncodedCommand", encode("echo ü")}, "ü\r\n", "", 0},
		{[]string{"exit 3"}, "", "", 3},
		{[]string{"throw 'bad'"}, "", "bad\r\n", 1},
		{[]string{"Get-Unknown x | Format-Table"}, "", "winlab: powershell.exe here does not know Get-Unknown\r\n", 1},
		{[]string{"if (-not(Test-Path nosuch)) { 'none' }; if (-not $false) { 'not' }"}, "none\r\nnot\r\n", "", 0},
		{[]string{"try { throw 'bad' } catch { echo \"caught $_\" } finally { echo end }"}, "caught bad\r\nend\r\n", "", 0},
		{[]string{"$i = 0; while ($true) { $i++; if ($i -eq 2) { continue }; if ($i -gt 3) { break }; $i }"}, "1\r\n3\r\n", "", 0},
		{[]string{"for ($i = 0; $i -lt 3; $i++) { Write-Host -NoNewline $i }"}, "012", "", 0},
		{[]string{"do { 'once' } while ($false)"}, "once\r\n", "", 0},
		{[]string{"if (1 -gt 2) { 'a' } elseif ('x' -like 'X*') { 'b' } else { 'c' }"}, "b\r\n", "", 0},
		{[]string{"1,2,3 | % { $_ * 2 } | ? { $_ -gt 2 }"}, "4\r\n6\r\n", "", 0},
		{[]string{"@(1,2).Count; 'abc'.ToUpper().Length; (1..3)[-1]; [int]'7' + 1; 'a b' -split ' '"}, "2\r\n3\r\n3\r\n8\r\na\r\nb\r\n", "", 0},
		{[]string{"$t = @{a = 1; 'b' = 2}; $t.a + $t['b']; $t.c = 4; $t.Count"}, "3\r\n3\r\n", "", 0},
		{[]string{"Test-Path f; Test-Path nosuch; mkdir d; New-Item -ItemType Directory -Force -Path e; rm f; Test-Path f"},
			"True\r\nFalse\r\nFalse\r\n", "", 0},
		{[]string{"whoami; findstr nothing g"}, "user manager\\containeruser\r\n", "", 1},
		{[]string{"(Invoke-WebRequest -UseBasicParsing -TimeoutSec 10 " + web.URL + "/a).Content"}, "GET /a  \r\n", "", 0},
		{[]string{"(iwr " + web.URL + " -UseBasicParsing).StatusCode"}, "200\r\n", "", 0},
		{[]string{"iwr http://nosuch/"}, "", "Invoke-WebRequest : The remote name could not be resolved: 'nosuch'\r\n", 1},
		{[]string{"iwr " + web.URL + "/missing"}, "", "Invoke-WebRequest : The remote server returned an error: (404) Not Found.\r\n", 1},
		{[]string{"nosuchprogram.exe"}, "", "nosuchprogram.exe : The term 'nosuchprogram.exe' is not recognized", 1},
		{[]string{"Get-Nothing; echo on"}, "on\r\n", "winlab: powershell.exe here does not know Get-Nothing\r\n", 0},
		{[]string{"/c", "$ErrorActionPreference = 'Stop'; (Get-Item -Force -LiteralPath " + link + ").LinkType"}, "SymbolicLink\r\n", "", 0},
		{[]string{"/c", "$ErrorActionPreference = 'Stop'; (Get-Item -Force -LiteralPath " + link + ").Target"}, "g\r\n", "", 0},
		{[]string{"/c", "$ErrorActionPreference = 'Stop'; (Get-Item -Force -LiteralPath g).LinkType; (Get-Item g).Length"}, "11\r\n", "", 0},
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
	for _, s := range []string{"", "$x = @{a=1}", "foreach ($a in 1..3) { $a }", "\"$(1+2)\" -f 1,2", "& { } | % { $_ }", "[int]'5'",
		"a > b 2>&1", "if(1){}else{}"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { _, _ = psParse(s) })
}
