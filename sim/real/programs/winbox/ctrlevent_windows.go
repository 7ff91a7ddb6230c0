package main

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// processes lists those of the container.
func processes() (all []proc, err error) {
	snapshot, err := syscall.CreateToolhelp32Snapshot(syscall.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("CreateToolhelp32Snapshot: %w", err)
	}
	defer func() { _ = syscall.CloseHandle(snapshot) }()
	e := syscall.ProcessEntry32{Size: uint32(unsafe.Sizeof(syscall.ProcessEntry32{}))}
	for err = syscall.Process32First(snapshot, &e); err == nil; err = syscall.Process32Next(snapshot, &e) {
		all = append(all, proc{id: e.ProcessID, image: syscall.UTF16ToString(e.ExeFile[:]), start: started(e.ProcessID)})
	}
	if !errors.Is(err, syscall.ERROR_NO_MORE_FILES) {
		return nil, fmt.Errorf("Process32Next: %w", err)
	}
	return all, nil
}

// started is when a process began, in 100 ns; the end of time for one that cannot be asked.
func started(id uint32) int64 {
	const never = 1<<63 - 1
	h, err := syscall.OpenProcess(syscall.PROCESS_QUERY_INFORMATION, false, id)
	if err != nil {
		return never
	}
	defer func() { _ = syscall.CloseHandle(h) }()
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return never
	}
	return created.Nanoseconds()
}

// shutdownEvent lets a process handle CTRL_SHUTDOWN_EVENT, with a thread that begins at
// CtrlRoutine, as the console has such events handled and runhcs sends them to HostProcess
// containers (microsoft/hcsshim internal/jobcontainers/process.go, signalProcess).
func shutdownEvent(id uint32) error {
	const (
		access   = 0x2 | 0x8 | 0x10 | 0x20 | 0x400 // create threads, VM operations, query
		shutdown = 6                               // CTRL_SHUTDOWN_EVENT
	)
	h, err := syscall.OpenProcess(access, false, id)
	if err != nil {
		return fmt.Errorf("OpenProcess: %w", err)
	}
	defer func() { _ = syscall.CloseHandle(h) }()
	// System DLLs have one address in all processes.
	routine := syscall.NewLazyDLL("kernelbase.dll").NewProc("CtrlRoutine")
	if err := routine.Find(); err != nil {
		return err
	}
	thread, _, err := syscall.NewLazyDLL("kernel32.dll").NewProc("CreateRemoteThread").Call(uintptr(h), 0, 0, routine.Addr(), shutdown, 0, 0)
	if thread == 0 {
		return fmt.Errorf("CreateRemoteThread: %w", err)
	}
	return syscall.CloseHandle(syscall.Handle(thread))
}
