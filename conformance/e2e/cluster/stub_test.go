package cluster

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stub is a runtime without containers: enough for a node to be Ready.
type stub struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer
	server   *grpc.Server
	endpoint string
}

func stubRuntime(ctx context.Context, n Node) (Runtime, error) {
	var l net.Listener
	var err error
	s := &stub{server: grpc.NewServer()}
	if n.Windows != nil {
		l, err = n.Net.Listen(ctx, n.Machine, netip.MustParseAddrPort("127.0.0.1:0"))
		if err == nil {
			s.endpoint = "tcp://" + l.Addr().String()
		}
	} else {
		file := filepath.Join(n.Dir, "cri.sock")
		l, err = net.Listen("unix", file)
		s.endpoint = "unix://" + file
	}
	if err != nil {
		return nil, err
	}
	cri.RegisterRuntimeServiceServer(s.server, s)
	cri.RegisterImageServiceServer(s.server, s)
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

func (s *stub) Endpoint() string { return s.endpoint }
func (s *stub) Close() error     { s.server.Stop(); return nil }

func (s *stub) Memory(context.Context) uint64 { return 0 }

func (s *stub) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "stub", RuntimeVersion: "1.7.0", RuntimeApiVersion: "v1"}, nil
}

func (s *stub) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{{Type: "RuntimeReady", Status: true},
		{Type: "NetworkReady", Status: true}}}}, nil
}

func (s *stub) ListContainers(context.Context, *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{}, nil
}

func (s *stub) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{}, nil
}

func (s *stub) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	return &cri.ListImagesResponse{}, nil
}

func (s *stub) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{}, nil
}

// need skips where a cluster cannot be had, and returns its programs.
func need(t *testing.T) *Programs {
	t.Helper()
	winetest.Need(t)
	p, err := CachedPrograms(t.Context(), ".", "1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		t.Skip("the programs of Kubernetes 1.37.0 are not built: make cluster-binaries")
	}
	return p
}
