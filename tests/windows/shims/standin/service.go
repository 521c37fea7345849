//go:build windows

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// The service manager and named pipes, by the calls of Windows itself.
var (
	advapi     = syscall.NewLazyDLL("advapi32.dll")
	dispatcher = advapi.NewProc("StartServiceCtrlDispatcherW")
	register   = advapi.NewProc("RegisterServiceCtrlHandlerExW")
	setStatus  = advapi.NewProc("SetServiceStatus")
	kernel     = syscall.NewLazyDLL("kernel32.dll")
	createPipe = kernel.NewProc("CreateNamedPipeW")
	connect    = kernel.NewProc("ConnectNamedPipe")
	disconnect = kernel.NewProc("DisconnectNamedPipe")
)

const (
	ownProcess  = 0x10
	stopped     = 1
	running     = 4
	acceptStop  = 0x5
	controlStop = 1
	shutdown    = 5
)

type serviceStatus struct {
	kind, state, accepted, exitCode, specific, checkPoint, waitHint uint32
}

type tableEntry struct {
	name *uint16
	main uintptr
}

var (
	handle uintptr
	ended  = make(chan struct{})
)

func report(state uint32) {
	status := serviceStatus{kind: ownProcess, state: state}
	if state == running {
		status.accepted = acceptStop
	}
	_, _, _ = setStatus.Call(handle, uintptr(unsafe.Pointer(&status)))
}

// Run as the service of this name until it is stopped.
func serve(name string) {
	text, _ := syscall.UTF16PtrFromString(name)
	control := syscall.NewCallback(func(code, _, _, _ uintptr) uintptr {
		if code == controlStop || code == shutdown {
			close(ended)
		}
		return 0
	})
	begin := syscall.NewCallback(func(_, _ uintptr) uintptr {
		handle, _, _ = register.Call(uintptr(unsafe.Pointer(text)), control, 0)
		report(running)
		<-ended
		report(stopped)
		return 0
	})
	table := []tableEntry{{text, begin}, {nil, 0}}
	if done, _, err := dispatcher.Call(uintptr(unsafe.Pointer(&table[0]))); done == 0 {
		fail("not started by the service manager: " + err.Error())
	}
	os.Exit(0)
}

// Take every connection to a named pipe, and end it.
func listen(name string) {
	text, _ := syscall.UTF16PtrFromString(name)
	for {
		pipe, _, err := createPipe.Call(uintptr(unsafe.Pointer(text)), 3, 0, 255, 4096, 4096, 0, 0)
		if pipe == ^uintptr(0) {
			fail("no pipe: " + err.Error())
		}
		_, _, _ = connect.Call(pipe, 0)
		_, _, _ = disconnect.Call(pipe)
		_ = syscall.CloseHandle(syscall.Handle(pipe))
	}
}
