//go:build windows

package main

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// sc.exe, as far as the scripts use it: wine's own refuses to change a service, and forgets what to do on failure.
var (
	openManager  = advapi.NewProc("OpenSCManagerW")
	openService  = advapi.NewProc("OpenServiceW")
	changeConfig = advapi.NewProc("ChangeServiceConfigW")
	remove       = advapi.NewProc("DeleteService")
	setValue     = advapi.NewProc("RegSetValueExW")
)

const (
	allAccess    = 0xF01FF
	noChange     = 0xFFFFFFFF
	keyAllAccess = 0xF003F
	binaryValue  = 3
	numberValue  = 4
)

func pointer(text string) uintptr {
	found, _ := syscall.UTF16PtrFromString(text)
	return uintptr(unsafe.Pointer(found))
}

func serviceManager(arguments []string) {
	if len(arguments) < 2 {
		fail("sc COMMAND SERVICE")
	}
	manager, _, err := openManager.Call(0, 0, 0xF003F)
	if manager == 0 {
		fail(err.Error())
	}
	service, _, _ := openService.Call(manager, pointer(arguments[1]), allAccess)
	if service == 0 {
		os.Stdout.WriteString("[SC] OpenService FAILED 1060:\n")
		os.Exit(1060)
	}
	if arguments[0] == "failureflag" && len(arguments) > 2 {
		flag, _ := strconv.Atoi(arguments[2])
		setRegistry(arguments[1], "FailureActionsOnNonCrashFailures", numberValue, binary.LittleEndian.AppendUint32(nil, uint32(flag)))
		os.Stdout.WriteString("[SC] SUCCESS\n")
		return
	}
	options := map[string]string{}
	for index := 2; index+1 < len(arguments); index += 2 {
		options[arguments[index]] = arguments[index+1]
	}
	switch arguments[0] {
	case "config":
		change(service, arguments[1], options)
	case "failure":
		onFailure(arguments[1], options)
	case "delete":
		if done, _, err := remove.Call(service); done == 0 {
			fail(err.Error())
		}
	default:
		fail("unknown command " + arguments[0])
	}
	os.Stdout.WriteString("[SC] SUCCESS\n")
}

func change(service uintptr, name string, options map[string]string) {
	program, start := uintptr(0), uintptr(noChange)
	if text, given := options["binPath="]; given {
		program = pointer(text)
	}
	if kind, known := map[string]uintptr{"auto": 2, "delayed-auto": 2, "demand": 3, "disabled": 4}[options["start="]]; known {
		start = kind
	}
	// Windows keeps what is not given; wine would forget it.
	list := dependencies(name)
	if text, given := options["depend="]; given {
		list = []uint16{}
		for _, one := range strings.FieldsFunc(text, func(letter rune) bool { return letter == '/' }) {
			encoded, _ := syscall.UTF16FromString(one)
			list = append(list, encoded...)
		}
	}
	// Each name has a zero at its end, and the list one more.
	list = append(list, 0, 0)
	needed := uintptr(unsafe.Pointer(&list[0]))
	done, _, err := changeConfig.Call(service, noChange, start, noChange, program, 0, 0, needed, 0, 0, 0)
	if done == 0 {
		fail(err.Error())
	}
}

func openKey(name string) syscall.Handle {
	var key syscall.Handle
	path, _ := syscall.UTF16PtrFromString(`SYSTEM\CurrentControlSet\Services\` + name)
	if err := syscall.RegOpenKeyEx(syscall.HKEY_LOCAL_MACHINE, path, 0, keyAllAccess, &key); err != nil {
		fail(err.Error())
	}
	return key
}

func dependencies(name string) []uint16 {
	value, _ := syscall.UTF16PtrFromString("DependOnService")
	list := make([]uint16, 512)
	size := uint32(2 * len(list))
	err := syscall.RegQueryValueEx(openKey(name), value, nil, nil, (*byte)(unsafe.Pointer(&list[0])), &size)
	if err != nil {
		return nil
	}
	return list[:size/2]
}

// As the service manager of Windows stores it: period, two unused, count, place of the list, then kind and delay of each.
func onFailure(name string, options map[string]string) {
	period, _ := strconv.Atoi(options["reset="])
	words := strings.Split(options["actions="], "/")
	packed := []uint32{uint32(period), 0, 0, uint32(len(words) / 2), 20}
	for index := 0; index+1 < len(words); index += 2 {
		delay, _ := strconv.Atoi(words[index+1])
		kind := map[string]uint32{"restart": 1, "reboot": 2, "run": 3}[words[index]]
		packed = append(packed, kind, uint32(delay))
	}
	bytes := []byte{}
	for _, one := range packed {
		bytes = binary.LittleEndian.AppendUint32(bytes, one)
	}
	setRegistry(name, "FailureActions", binaryValue, bytes)
}

func setRegistry(service, value string, kind uintptr, bytes []byte) {
	key := openKey(service)
	code, _, _ := setValue.Call(
		uintptr(key), pointer(value), 0, kind, uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)),
	)
	if code != 0 {
		fail("the registry refuses: " + strconv.Itoa(int(code)))
	}
}
