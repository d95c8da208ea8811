package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"slices"
	"sync"
	"time"
)

// Certificate says what the secure port shows of itself.
type Certificate struct {
	// File and Key are read again when they change; with "" the certificate is made
	// here, signed by itself, and renewed before it expires.
	File, Key string
	// Store keeps the one that is made here, at [MadeCertificate]; Names are those that
	// it is for, addresses among them.
	Store CertificateStore
	Names []string
}

// CertificateStore is the root dir: what it keeps only its owner can read. A file that
// is not there is an error.
type CertificateStore interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error
}

// MadeCertificate is where the certificate that is made here lies in the root dir,
// with its key.
const MadeCertificate = "pki/kubelet.pem"

const (
	validFor = 365 * 24 * time.Hour
	// renewed is how long before its end a certificate is made anew.
	renewed = 30 * 24 * time.Hour
	// early is for clients whose clocks are behind.
	early = time.Hour
)

// TLS reads or makes the certificate and returns how connections are secured. With
// askClients a client may show a certificate; whether that holds is for [Callers].
func (c Certificate) TLS(askClients bool, log *slog.Logger) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if askClients {
		cfg.ClientAuth = tls.RequestClientCert
	}
	if c.File != "" {
		pair := &pairOfFiles{log: log, files: watched[*tls.Certificate]{paths: []string{c.File, c.Key}, parse: parsePair}}
		_, err := pair.get(nil)
		cfg.GetCertificate = pair.get
		return cfg, err
	}
	own := &madeHere{Certificate: c, log: log}
	_, err := own.get(nil)
	cfg.GetCertificate = own.get
	return cfg, err
}

// pairOfFiles goes on with the last good pair while the files are wrong, as they are
// when one of them is newer than the other.
type pairOfFiles struct {
	files watched[*tls.Certificate]
	log   *slog.Logger
	mu    sync.Mutex
	last  *tls.Certificate
}

func (p *pairOfFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pair, changed, err := p.files.get()
	switch {
	case err == nil:
		p.last = pair
	case p.last == nil:
		return nil, fmt.Errorf("TLS certificate %s and key %s: %w", p.files.paths[0], p.files.paths[1], err)
	case changed:
		p.log.Warn("the TLS certificate and its key do not go together; the one of before is shown", "err", err)
	}
	return p.last, nil
}

func parsePair(files [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(files[0], files[1])
	return &pair, err
}

// madeHere is a certificate that is signed by itself.
type madeHere struct {
	Certificate
	log *slog.Logger
	mu  sync.Mutex
	now *tls.Certificate
}

// get is called at each handshake: one that runs out is found then, and by nobody
// sooner.
func (m *madeHere) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now()
	if m.now == nil {
		if data, err := m.Store.ReadFile(MadeCertificate); err == nil {
			if pair, err := tls.X509KeyPair(data, data); err == nil {
				m.now = &pair
			}
		}
	}
	if m.now != nil && serves(m.now.Leaf, m.Names, at) {
		return m.now, nil
	}
	data, err := makeCertificate(m.Names, at)
	if err != nil {
		return nil, fmt.Errorf("make a TLS certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("make a TLS certificate: %w", err)
	}
	if err := m.Store.WriteFile(MadeCertificate, data); err != nil {
		if m.now == nil {
			return nil, fmt.Errorf("keep the TLS certificate: %w", err)
		}
		m.log.Warn("the new TLS certificate cannot be kept; the next start makes another one", "err", err)
	}
	m.now = &pair
	m.log.Info("made a TLS certificate, signed by itself", "names", m.Names, "until", pair.Leaf.NotAfter)
	return m.now, nil
}

// serves reports whether a certificate is for all those names, and for long enough.
func serves(c *x509.Certificate, names []string, now time.Time) bool {
	other := func(name string) bool { return c.VerifyHostname(name) != nil }
	return !now.Before(c.NotBefore) && now.Add(renewed).Before(c.NotAfter) && !slices.ContainsFunc(names, other)
}

// makeCertificate returns a new certificate and its key, in one PEM.
func makeCertificate(names []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]},
		NotBefore: now.Add(-early), NotAfter: now.Add(validFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = errors.Join(
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	)
	return text.Bytes(), err
}
