// Package testapi is a real API server for tests: etcd and kube-apiserver of the pinned
// programs, on loopback, without controllers, scheduler and nodes. It must not know what
// is tested with it.
package testapi

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
)

// Server is an API server that runs until the test ends.
type Server struct {
	// Config has all rights.
	Config *rest.Config
	Client kubernetes.Interface
	dir    string
}

// Start starts an API server. The test skips where its programs are not built.
func Start(t *testing.T) *Server {
	t.Helper()
	programs, err := cluster.CachedPrograms(t.Context(), ".", "1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	if programs == nil {
		t.Skip("the programs of Kubernetes 1.37.0 are not built: make cluster-binaries")
	}
	path := func(name string) string {
		file, err := programs.Path(name)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	s := &Server{dir: t.TempDir()}
	// Cleanups run in reverse order: the context of the test is done before them.
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	etcd, peer, port := freePort(t), freePort(t), freePort(t)
	waits := []func(){}
	t.Cleanup(func() {
		stop()
		for _, w := range waits {
			w()
		}
	})
	waits = append(waits, s.start(ctx, t, path("etcd"), "--data-dir", filepath.Join(s.dir, "etcd"),
		"--listen-client-urls", "http://127.0.0.1:"+etcd, "--advertise-client-urls", "http://127.0.0.1:"+etcd,
		"--listen-peer-urls", "http://127.0.0.1:"+peer, "--initial-advertise-peer-urls", "http://127.0.0.1:"+peer, "--initial-cluster",
		"default=http://127.0.0.1:"+peer))
	key := s.file(t, "sa.key", serviceAccountKey(t))
	tokens := s.file(t, "tokens.csv", "admin,admin,1,system:masters\nguest,guest,2,\n")
	waits = append(waits, s.start(ctx, t, path("kube-apiserver"), "--etcd-servers", "http://127.0.0.1:"+etcd, "--secure-port", port,
		"--bind-address", "127.0.0.1",
		"--cert-dir", filepath.Join(s.dir, "pki"), "--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range",
		"10.96.0.0/16",
		"--service-account-issuer", "https://winlab.test", "--service-account-signing-key-file", key, "--service-account-key-file", key,
		// No controller makes service accounts here.
		"--disable-admission-plugins", "ServiceAccount", "--allow-privileged=true"))
	s.Config = &rest.Config{Host: "https://127.0.0.1:" + port, BearerToken: "admin", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if s.Client, err = kubernetes.NewForConfig(s.Config); err != nil {
		t.Fatal(err)
	}
	s.await(ctx, t)
	return s
}

// Kubeconfig writes a kubeconfig of a user: admin, or guest, who has no rights.
func (s *Server) Kubeconfig(t *testing.T, user string) string {
	t.Helper()
	c := api.NewConfig()
	c.Clusters["test"] = &api.Cluster{Server: s.Config.Host, InsecureSkipTLSVerify: true}
	c.AuthInfos["user"] = &api.AuthInfo{Token: user}
	c.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "user"}
	c.CurrentContext = "test"
	name := filepath.Join(s.dir, user+".kubeconfig")
	if err := clientcmd.WriteToFile(*c, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// start runs a program until ctx ends; what it returns waits for its end.
func (s *Server) start(ctx context.Context, t *testing.T, program string, args ...string) func() {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() { _ = cmd.Wait() }
}

// await waits until the API server is ready and says what it wrote when it never is.
func (s *Server) await(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		code := 0
		s.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code == http.StatusOK {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(s.dir, "kube-apiserver.log"))
			lines := strings.Split(string(text), "\n")
			t.Fatalf("kube-apiserver is not ready:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Server) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func serviceAccountKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
