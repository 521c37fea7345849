//go:build windows

// A stand-in for the kubelet's service: the kubelet's own TLS bootstrap, a Node object and /healthz. It runs no pods.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows/svc"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap"
)

const logFile = `C:\standin-kubelet.log`

// The value of a flag of the real kubelet; all others are ignored.
func flag(name, otherwise string) string {
	for _, word := range os.Args[1:] {
		if value, found := strings.CutPrefix(word, "--"+name+"="); found {
			return value
		}
	}
	return otherwise
}

func note(format string, values ...any) {
	file, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(file, format+"\n", values...)
}

// The certificate that was issued becomes the current one by a symbolic link, which not every Windows API makes.
func finish(kubeconfig, from, certificates string) error {
	issued, _ := filepath.Glob(filepath.Join(certificates, "kubelet-client-2*.pem"))
	if len(issued) == 0 {
		return errors.New("no certificate was issued")
	}
	content, err := os.ReadFile(slices.Max(issued))
	if err != nil {
		return err
	}
	current := filepath.Join(certificates, "kubelet-client-current.pem")
	if err := os.WriteFile(current, content, 0o600); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Token = ""
		user.ClientCertificate, user.ClientKey = current, current
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

func register(ctx context.Context, name string) error {
	kubeconfig := flag("kubeconfig", `C:\etc\kubernetes\kubelet.conf`)
	from := flag("bootstrap-kubeconfig", `C:\etc\kubernetes\bootstrap-kubelet.conf`)
	certificates := flag("cert-dir", `C:\var\lib\kubelet\pki`)
	if err := bootstrap.LoadClientCert(ctx, kubeconfig, from, certificates, types.NodeName(name)); err != nil {
		note("bootstrap: %v", err)
		if err := finish(kubeconfig, from, certificates); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	labels := map[string]string{core.LabelOSStable: "windows", core.LabelArchStable: "amd64", core.LabelHostname: name}
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func work(ctx context.Context) {
	machine, _ := os.Hostname()
	name := strings.ToLower(flag("hostname-override", machine))
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, time.Minute)
		err := register(attempt, name)
		cancel()
		if err == nil {
			note("registered %s", name)
			return
		}
		note("not registered: %v", err)
		time.Sleep(time.Second)
	}
}

type service struct{}

func (service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	note("started %q", os.Args[1:])
	http.HandleFunc("/healthz", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "ok") })
	go func() { note("healthz: %v", http.ListenAndServe("127.0.0.1:10248", nil)) }()
	go work(ctx)
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for request := range requests {
		switch request.Cmd {
		case svc.Interrogate:
			status <- request.CurrentStatus
		case svc.Stop, svc.Shutdown:
			note("stopped")
			status <- svc.Status{State: svc.StopPending}
			return false, 0
		}
	}
	return false, 0
}

func main() {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("Kubernetes", version.Get())
		return
	}
	if err := svc.Run("kubelet", service{}); err != nil {
		note("no service: %v", err)
		os.Exit(1)
	}
}
