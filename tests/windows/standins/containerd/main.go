//go:build windows

// A stand-in for containerd: it answers on the runtime's named pipe whatever kubeadm asks, and runs nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows/svc"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const pipe = `\\.\pipe\containerd-containerd`

type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer
}

func (runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.1.5", RuntimeApiVersion: "v1"}, nil
}

func (runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	conditions := []*cri.RuntimeCondition{{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true}}
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: conditions}}, nil
}

func (runtime) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{}, nil
}

func (runtime) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{}, nil
}

func (runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{}, nil
}

// Each question is printed, so that a test can see that it was asked.
func told(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, request)
	fmt.Println(call.FullMethod, err)
	return answer, err
}

func serve() error {
	listener, err := winio.ListenPipe(pipe, nil)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(told))
	cri.RegisterRuntimeServiceServer(server, runtime{})
	cri.RegisterImageServiceServer(server, runtime{})
	fmt.Println("serving", pipe)
	return server.Serve(listener)
}

type service struct{}

func (service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	go serve()
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for request := range requests {
		if request.Cmd == svc.Stop || request.Cmd == svc.Shutdown {
			return false, 0
		}
		status <- request.CurrentStatus
	}
	return false, 0
}

func main() {
	run := serve
	if slices.Contains(os.Args, "--run-service") {
		run = func() error { return svc.Run("containerd", service{}) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
