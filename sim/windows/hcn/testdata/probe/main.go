// Command probe calls winlab's DLLs as a Windows program does, and prints one
// line per call for the test: the HRESULT and what came with it.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var (
	hcn  = syscall.NewLazyDLL("computenetwork.dll")
	hns  = syscall.NewLazyDLL("vmcompute.dll")
	free = syscall.NewLazyDLL("ole32.dll").NewProc("CoTaskMemFree")
)

func utf16(s string) uintptr {
	p, err := syscall.UTF16PtrFromString(s)
	if err != nil {
		panic(err)
	}
	return uintptr(unsafe.Pointer(p))
}

func take(p *uint16) string {
	if p == nil {
		return "NULL"
	}
	s := syscall.UTF16ToString((*[1 << 29]uint16)(unsafe.Pointer(p))[:])
	free.Call(uintptr(unsafe.Pointer(p)))
	return s
}

func call(name string, args ...uintptr) uint32 {
	r, _, _ := hcn.NewProc(name).Call(args...)
	return uint32(r)
}

func ptr[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func hnsCall(method, path string) (uint32, string) {
	var out *uint16
	r, _, _ := hns.NewProc("HNSCall").Call(utf16(method), utf16(path), utf16(""), ptr(&out))
	return uint32(r), take(out)
}

func enumerate() (uint32, string, string) {
	var ids, rec *uint16
	hr := call("HcnEnumerateNetworks", utf16(""), ptr(&ids), ptr(&rec))
	return hr, take(ids), take(rec)
}

func main() {
	switch os.Args[1] {
	case "alone": // no service
		hr, ids, rec := enumerate()
		say("enumerate %x %s %s", hr, ids, rec)
		hr, out := hnsCall("GET", "/globals/version")
		say("v1 %x %s", hr, out)
	case "talk":
		talk()
	case "restart":
		restart()
	case "bench":
		bench()
	case "wine":
		version, _, _ := syscall.NewLazyDLL("ntdll.dll").NewProc("wine_get_version").Call()
		var text [64]byte
		syscall.NewLazyDLL("kernel32.dll").NewProc("lstrcpynA").Call(ptr(&text), version, uintptr(len(text)))
		name, _, _ := strings.Cut(string(text[:]), "\x00")
		say("%s", name)
	case "adapters":
		adapters()
	}
}

// adapters shows what Go's net package sees, and calls a function of iphlpapi.dll
// that is not ours.
func adapters() {
	all, err := net.Interfaces()
	var number syscall.Errno
	if errors.As(err, &number) {
		say("error %d", number)
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		say("%d %s %s %d %s %v %v", i.Index, i.Name, i.HardwareAddr, i.MTU, i.Flags, addresses, err)
	}
	var size uint32
	r, _, _ := syscall.NewLazyDLL("iphlpapi.dll").NewProc("GetIpForwardTable").Call(0, ptr(&size), 0)
	say("routes %d %t", r, size > 0)
}

func talk() {
	var id [16]byte
	var handle, rec, props *uint16 // a handle is as wide as a pointer
	hr := call("HcnCreateNetwork", ptr(&id), utf16(`{"Name":"Nätz-網-😀","Type":"NAT"}`), ptr(&handle), ptr(&rec))
	say("create %x %s", hr, take(rec))
	hr = call("HcnQueryNetworkProperties", uintptr(unsafe.Pointer(handle)), utf16(""), ptr(&props), ptr(&rec))
	say("query %x %s %s", hr, take(props), take(rec))
	hr = call("HcnQueryNetworkProperties", uintptr(unsafe.Pointer(handle)), 0, ptr(&props), 0)
	say("query without a query %x %t", hr, props != nil)
	hr = call("HcnQueryEndpointProperties", uintptr(unsafe.Pointer(handle)), utf16(""), ptr(&props), ptr(&rec))
	say("query as endpoint %x %s %s", hr, take(props), take(rec))
	hr = call("HcnOpenNetwork", ptr(&id), ptr(&props), ptr(&rec))
	say("open nothing %x %t %s", hr, props == nil, take(rec))
	say("open NULL %x", call("HcnOpenNetwork", 0, ptr(&props), ptr(&rec)))
	say("enumerate into NULL %x", call("HcnEnumerateNetworks", utf16(""), 0, ptr(&rec)))
	say("close %x", call("HcnCloseNetwork", uintptr(unsafe.Pointer(handle))))
	say("close again %x", call("HcnCloseNetwork", uintptr(unsafe.Pointer(handle))))
}

// restart asks the test to restart the service and calls until the new one has
// answered.
func restart() {
	var id [16]byte
	var handle, rec *uint16
	say("create %x", call("HcnCreateNetwork", ptr(&id), utf16(`{"Name":"n","Type":"NAT"}`), ptr(&handle), ptr(&rec)))
	hnsCall("GET", "/probe/restart")
	last := uint32(1)
	for range 2000 {
		var props, rec *uint16
		hr := call("HcnQueryNetworkProperties", uintptr(unsafe.Pointer(handle)), utf16(""), ptr(&props), ptr(&rec))
		take(props)
		take(rec)
		if hr != last {
			say("query %x", hr)
		}
		if last = hr; hr == 0x80070006 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	hr, ids, _ := enumerate()
	say("enumerate %x %s", hr, ids)
}

func bench() {
	n, _ := strconv.Atoi(os.Args[2])
	threads, _ := strconv.Atoi(os.Args[3])
	var wg sync.WaitGroup
	start := time.Now()
	for range threads {
		wg.Go(func() {
			for range n / threads {
				if hr, _, _ := enumerate(); hr != 0 {
					say("enumerate %x", hr)
					os.Exit(1)
				}
			}
		})
	}
	wg.Wait()
	say("%d calls %.0f/s", n, float64(n)/time.Since(start).Seconds())
}
