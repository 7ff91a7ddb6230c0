// Command hello prints what it sees of Windows.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

var greeting = "unset"

func main() {
	switch os.Args[1] {
	case "show": // show KEY NAME...: values of HKLM
		fmt.Println(greeting, os.Getenv("GREETED"), os.Getenv("HOME"))
		fmt.Println("version", version())
		for _, name := range os.Args[3:] {
			fmt.Println(name, value(os.Args[2], name))
		}
	case "copy": // copies its input to its output, in upper case to its errors
		s := bufio.NewScanner(os.Stdin)
		for s.Scan() {
			fmt.Println(s.Text())
			fmt.Fprintln(os.Stderr, "read", len(s.Text()))
		}
	case "exit":
		n, _ := strconv.Atoi(os.Args[2])
		os.Exit(n)
	case "unix": // listens at a path, and sends back the first line that comes
		l, err := net.Listen("unix", os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("listens at", l.Addr())
		c, err := l.Accept()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "got %s", line)
		c.Close()
		_, err = net.Dial("unix", os.Args[2])
		fmt.Println("dial:", err)
		fmt.Println("close:", l.Close())
	case "links": // makes, reads, replaces and removes links in a folder, which must not exist
		links(os.Args[2])
	case "udp": // listens, and sends a datagram to itself
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		to, err := net.Dial("udp4", c.LocalAddr().String())
		if err == nil {
			_, err = to.Write([]byte("a datagram"))
		}
		text := make([]byte, 100)
		n, from, readErr := c.ReadFrom(text)
		fmt.Println("got", string(text[:n]), from.String() == to.LocalAddr().String(), err, readErr)
	case "sleep":
		fmt.Println("asleep")
		time.Sleep(time.Hour)
	case "polite": // ends by itself on Ctrl-C
		c := make(chan os.Signal, 1)
		signal.Notify(c, os.Interrupt)
		fmt.Println("asleep")
		fmt.Println("got", <-c)
		os.Exit(7)
	case "graceful": // takes its time when it is asked to end
		c := make(chan os.Signal, 1)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM)
		fmt.Println("asleep")
		fmt.Println("got", <-c)
		time.Sleep(200 * time.Millisecond)
		fmt.Println("tidied up")
		os.Exit(7)
	case "stubborn": // ignores Ctrl-C, and has a child
		signal.Ignore(os.Interrupt)
		child := exec.Command(os.Args[0], "sleep")
		fmt.Println(child.Start())
		fmt.Println("asleep")
		time.Sleep(time.Hour)
	}
}

// version is what RtlGetVersion says, which no manifest of the program changes.
func version() string {
	var info struct {
		size, major, minor, build, platform uint32
		csd                                 [128]uint16
	}
	info.size = uint32(unsafe.Sizeof(info))
	syscall.NewLazyDLL("ntdll.dll").NewProc("RtlGetVersion").Call(uintptr(unsafe.Pointer(&info)))
	return fmt.Sprintf("%d.%d.%d", info.major, info.minor, info.build)
}

func value(path, name string) string {
	var key syscall.Handle
	p, _ := syscall.UTF16PtrFromString(path)
	n, _ := syscall.UTF16PtrFromString(name)
	if err := syscall.RegOpenKeyEx(syscall.HKEY_LOCAL_MACHINE, p, 0, syscall.KEY_READ, &key); err != nil {
		return "no key: " + err.Error()
	}
	defer syscall.RegCloseKey(key)
	var kind uint32
	buf := make([]uint16, 512)
	size := uint32(2 * len(buf))
	if err := syscall.RegQueryValueEx(key, n, nil, &kind, (*byte)(unsafe.Pointer(&buf[0])), &size); err != nil {
		return "no value: " + err.Error()
	}
	switch kind {
	case syscall.REG_SZ:
		return "string " + syscall.UTF16ToString(buf)
	case syscall.REG_DWORD:
		return fmt.Sprint("number ", uint32(buf[0])|uint32(buf[1])<<16)
	}
	return fmt.Sprint("type ", kind)
}

func links(dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"one", "two"} {
		os.MkdirAll(at(d), 0o755)
		os.WriteFile(filepath.Join(at(d), "token"), []byte(d), 0o644)
	}
	_, err := os.Readlink(at("data"))
	fmt.Println("before:", os.IsNotExist(err))
	fmt.Println("no folder:", os.IsNotExist(os.Symlink("one", at("none/data"))))
	fmt.Println("made:", os.Symlink("one", at("data")), os.Symlink(`data\token`, at("token")), os.Symlink(at("two"), at("absolute")))
	show := func() {
		for _, l := range []string{"data", "token", "absolute"} {
			to, err := os.Readlink(at(l))
			fmt.Println(l, "->", to, err)
		}
		text, err := os.ReadFile(at("token"))
		fmt.Println("token:", string(text), err)
	}
	show()
	fmt.Println("again:", os.IsExist(os.Symlink("two", at("data"))))
	_, err = os.Readlink(at("one"))
	fmt.Println("of a folder:", err != nil && !os.IsNotExist(err))
	fmt.Println("replaced:", os.Remove(at("data")), os.Symlink("two", at("data")))
	show()
	fmt.Println("removed:", os.Remove(at("token")), os.RemoveAll(at("absolute")))
	_, err = os.Stat(filepath.Join(at("two"), "token"))
	fmt.Println("what it led to:", err)
	fmt.Println("all removed:", os.RemoveAll(dir))
	_, err = os.Stat(dir)
	fmt.Println("gone:", os.IsNotExist(err))
}
