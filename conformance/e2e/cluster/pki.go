package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	clientcmd "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// pki is the cluster's certificate authority. One is enough where kubeadm makes three: it
// lives as long as the cluster, and is not trusted outside.
type pki struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// lifetime of the certificates.
const lifetime = 365 * 24 * time.Hour

func newPKI(dir string) (*pki, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "winlab-cluster"}, key)
	if err != nil {
		return nil, err
	}
	p := &pki{dir: dir, cert: c, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.ca(), p.pem, 0o600); err != nil {
		return nil, err
	}
	if err := p.writeKey("ca.key", key); err != nil {
		return nil, err
	}
	// Service accounts' tokens are signed by a key of their own.
	sa, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return p, p.writeKey("sa.key", sa)
}

func (p *pki) ca() string               { return filepath.Join(p.dir, "ca.crt") }
func (p *pki) file(name string) string  { return filepath.Join(p.dir, name) }
func (p *pki) crt(name string) string   { return p.file(name + ".crt") }
func (p *pki) keyOf(name string) string { return p.file(name + ".key") }

func (p *pki) writeKey(name string, key crypto.Signer) error {
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(p.file(name), text, 0o600)
}

// issue makes NAME.crt and NAME.key for a user (and client), and, where it has names, for
// a server.
func (p *pki) issue(name, user string, groups []string, names cert.AltNames) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	now := time.Now()
	template := x509.Certificate{
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		DNSNames:     names.DNSNames,
		IPAddresses:  names.IPs,
		SerialNumber: serial,
		NotBefore:    now.Add(-time.Hour), // a clock that is a little behind
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(names.DNSNames)+len(names.IPs) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, p.cert, key.Public(), p.key)
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", name, err)
	}
	if err := p.writeKey(name+".key", key); err != nil {
		return err
	}
	return os.WriteFile(p.crt(name), pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), 0o600)
}

// kubeconfig is that of an issued user, with everything inside: kubelet.exe reads it under
// Wine, where paths are others.
func (p *pki) kubeconfig(name, server string) (*clientcmd.Config, error) {
	crt, err := os.ReadFile(p.crt(name))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(p.keyOf(name))
	if err != nil {
		return nil, err
	}
	const cluster = "winlab"
	return &clientcmd.Config{
		Clusters:       map[string]*clientcmd.Cluster{cluster: {Server: server, CertificateAuthorityData: p.pem}},
		AuthInfos:      map[string]*clientcmd.AuthInfo{name: {ClientCertificateData: crt, ClientKeyData: key}},
		Contexts:       map[string]*clientcmd.Context{cluster: {Cluster: cluster, AuthInfo: name}},
		CurrentContext: cluster,
	}, nil
}

// ips are addresses as certificates have them.
func ips(all ...string) (list []net.IP) {
	for _, a := range all {
		if ip := net.ParseIP(a); ip != nil {
			list = append(list, ip)
		}
	}
	return list
}
