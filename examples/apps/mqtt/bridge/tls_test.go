package bridge

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.key = a.newKey()
	a.cert = &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert = a.sign("ca", a.cert, a.key)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// sign writes a certificate and its key to the files NAME.crt and NAME.key.
func (a *authority) sign(name string, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Unix(0, 0), time.Now().AddDate(10, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// client returns the settings of a client whose certificate has a common name.
func (a *authority) client(name string) *tls.Config {
	a.sign(name, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.newKey())
	pair, err := tls.LoadX509KeyPair(filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.pool, Certificates: []tls.Certificate{pair}}
}

// TestCertificatesNameTenants: with the lines that the README shows, the broker takes a device's tenant from its
// certificate and lets it publish only below that tenant.
func TestCertificatesNameTenants(t *testing.T) {
	mosquittoPath(t)
	a := newAuthority(t)
	a.sign("broker", &x509.Certificate{
		Subject: pkix.Name{CommonName: "broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.newKey())
	file := func(name string) string { return filepath.Join(a.dir, name) }
	if err := os.WriteFile(file("acl"), []byte("user bridge\ntopic readwrite #\npattern write v1/%u/#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := startBroker(t, "cafile "+file("ca.crt"), "certfile "+file("broker.crt"), "keyfile "+file("broker.key"),
		"require_certificate true", "use_identity_as_username true", "allow_anonymous false", "acl_file "+file("acl"))
	m.scheme = "mqtts"
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry), Config{TLS: a.client("bridge")})

	connect := func(id string) *autopaho.ConnectionManager {
		return m.client(id, func(c *autopaho.ClientConfig) { c.TlsCfg = a.client("acme") })
	}
	payload := []byte(`{"ts":1767225600000,"temp":1}`)
	waiting, stop := context.WithTimeout(t.Context(), time.Second) // mosquitto refuses, or only ends the connection
	defer stop()
	if res, err := connect("intruder").Publish(waiting, &paho.Publish{QoS: 1, Topic: "v1/globex/berlin/t1/telemetry", Payload: payload}); err == nil {
		t.Errorf("the broker accepted another tenant's topic: %+v", res)
	}
	publish(t, connect("device"), "v1/acme/berlin/t1/telemetry", string(payload))
	waitStats(t, b, func(s Stats) bool { return s.Stored == 1 })
	if got, want := points(t, store, acme, "telemetry", "berlin", "t1"), []string{"1767225600000 {temp=1i}"}; !slices.Equal(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
	if got := points(t, store, globex, "telemetry", "berlin", "t1"); got != nil {
		t.Errorf("another tenant got %q", got)
	}
}
