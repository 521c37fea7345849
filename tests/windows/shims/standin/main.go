//go:build windows

// A stand-in for every program of a bundle; which one it plays is told by the name that it was given.
//
// It does to files, services, pipes and ports what the scripts rely on, notes each start in C:\shim\programs.jsonl, and
// does what the files below C:\shim\order\ ask for. It needs nothing but Go's own library.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Set when it is built, so that releases differ in their bytes as in their words.
var version = "0.0.0"

func note(program string) {
	file, err := os.OpenFile(`C:\shim\programs.jsonl`, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	line, _ := json.Marshal(map[string]any{"program": program, "version": version, "arguments": os.Args[1:]})
	fmt.Fprintf(file, "%s\n", line)
}

// What a test ordered a program to do, and whether it did.
func order(name string) (string, bool) {
	text, err := os.ReadFile(`C:\shim\order\` + name)
	return string(text), err == nil
}

func write(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fail(err.Error())
	}
}

func fail(words string) {
	fmt.Fprintln(os.Stderr, words)
	os.Exit(1)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

const (
	kubernetes = `C:\etc\kubernetes`
	kubelet    = `C:\var\lib\kubelet`
)

func kubeadm(arguments []string) {
	switch strings.Join(arguments[:min(2, len(arguments))], " ") {
	case "join --config":
		join(arguments[2])
	case "reset --force":
		_ = exec.Command("net", "stop", "kubelet").Run()
		for _, name := range []string{"kubelet.conf", "bootstrap-kubelet.conf", `pki\ca.crt`} {
			_ = os.Remove(filepath.Join(kubernetes, name))
		}
		entries, _ := os.ReadDir(kubelet)
		for _, entry := range entries {
			_ = os.RemoveAll(filepath.Join(kubelet, entry.Name()))
		}
		fmt.Println("[reset] done")
	case "upgrade node":
		if words, asked := order("upgrade-fails"); asked {
			fail(words)
		}
		write(kubelet+`\config.yaml`, "kind: KubeletConfiguration # "+version+"\n")
		fmt.Println("[upgrade] done")
	default:
		fail("unknown command " + strings.Join(arguments, " "))
	}
}

func join(config string) {
	text, err := os.ReadFile(config)
	if err != nil {
		fail(err.Error())
	}
	write(`C:\shim\join.yaml`, string(text))
	var document struct {
		Discovery struct {
			BootstrapToken struct{ Token string }
		}
	}
	if json.Unmarshal(text, &document) != nil {
		fail("the configuration is no JSON")
	}
	for _, name := range []string{"kubelet.conf", "bootstrap-kubelet.conf", `pki\ca.crt`} {
		if exists(filepath.Join(kubernetes, name)) {
			fail("[ERROR FileAvailable]: " + name + " already exists")
		}
	}
	authority, err := os.ReadFile(`C:\shim\ca.crt`)
	if err != nil {
		fail(err.Error())
	}
	write(kubernetes+`\pki\ca.crt`, string(authority))
	write(kubernetes+`\bootstrap-kubelet.conf`, document.Discovery.BootstrapToken.Token+"\n")
	if words, asked := order("join-fails"); asked {
		// As the real one does, with the token in its words.
		fail(words + " (token " + document.Discovery.BootstrapToken.Token + ")")
	}
	_ = exec.Command("net", "stop", "kubelet").Run()
	write(kubelet+`\config.yaml`, "kind: KubeletConfiguration # "+version+"\n")
	write(kubelet+`\kubeadm-flags.env`, `KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.5 --pod-infra-container-image=pause:3.10"`+"\n")
	if output, err := exec.Command("net", "start", "kubelet").CombinedOutput(); err != nil {
		fail("the kubelet does not start: " + string(output))
	}
	write(kubernetes+`\kubelet.conf`, "kubeconfig\n")
	_ = os.Remove(kubernetes + `\bootstrap-kubelet.conf`)
	fmt.Println("This node has joined the cluster with " + document.Discovery.BootstrapToken.Token)
}

// A log as containerd keeps it: opened once, for appending, and written to as long as it runs.
func chat(arguments []string) {
	for index, argument := range arguments {
		if argument != "--log-file" {
			continue
		}
		file, err := os.OpenFile(arguments[index+1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fail(err.Error())
		}
		for number := 0; ; number++ {
			fmt.Fprintf(file, "line %d\n", number)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func logRunner(arguments []string) {
	log := ""
	for len(arguments) > 0 && strings.HasPrefix(arguments[0], "-") {
		if path, found := strings.CutPrefix(arguments[0], "-log-file="); found {
			log = path
		}
		arguments = arguments[1:]
	}
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fail(err.Error())
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdout, command.Stderr = file, file
	if err := command.Run(); err != nil {
		os.Exit(1)
	}
}

func healthz() {
	handler := func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "ok") }
	server := &http.Server{Addr: "127.0.0.1:10248", Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Minute}
	_ = server.ListenAndServe()
}

func main() {
	program := strings.TrimSuffix(strings.ToLower(filepath.Base(os.Args[0])), ".exe")
	note(program)
	if len(os.Args) > 1 && strings.Contains(os.Args[1], "version") {
		fmt.Println("Kubernetes v" + version)
		return
	}
	switch program {
	case "kubeadm":
		kubeadm(os.Args[1:])
	case "kubelet":
		if broken, asked := order("kubelet-breaks"); asked && strings.TrimSpace(broken) == version {
			fail("unknown flag")
		}
		go healthz()
		serve("kubelet")
	case "containerd":
		if broken, asked := order("containerd-breaks"); asked && strings.TrimSpace(broken) == version {
			fail("unknown plugin in the settings")
		}
		go chat(os.Args[1:])
		go listen(`\\.\pipe\containerd-containerd`)
		serve("containerd")
	case "crictl":
		if os.Args[len(os.Args)-1] == "version" {
			fail("this is no runtime")
		}
		if words, asked := order("crictl-fails"); asked {
			fail(words)
		}
	case "kube-log-runner":
		logRunner(os.Args[1:])
	case "sc":
		serviceManager(os.Args[1:])
	}
}
