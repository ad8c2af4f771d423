package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/os/inputfile"
)

const (
	certificateLife = 10 * 365 * 24 * time.Hour
	minToken        = 16 // characters
)

// LoadCertificate reads a certificate and its key from files. If neither exists it creates them: a
// self-signed certificate for the host of listen, this machine's name and the loopback addresses.
func LoadCertificate(certificate, key, listen string) (tls.Certificate, error) {
	_, e1 := os.Stat(certificate)
	_, e2 := os.Stat(key)
	if errors.Is(e1, fs.ErrNotExist) && errors.Is(e2, fs.ErrNotExist) {
		if err := makeCertificate(certificate, key, listen); err != nil {
			return tls.Certificate{}, fmt.Errorf("certificate: %w", err)
		}
	}
	c, err := inputfile.Read(certificate, inputfile.Text)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := inputfile.Read(key, inputfile.Text)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(c, k)
}

func makeCertificate(certificate, key, listen string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "SoftVPI driver"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(certificateLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		t.DNSNames = append(t.DNSNames, name)
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, private.Public(), private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	if err := writeNew(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return err
	}
	return writeNew(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// LoadToken reads the token from a file, which it creates if it does not exist. A file that others can
// read is refused.
func LoadToken(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		if err := writeNew(path, []byte(token+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("token: %w", err)
		}
		return token, nil
	}
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("token: %s has mode %#o; allowed: 0600", path, info.Mode().Perm())
	}
	b, err := inputfile.Read(path, inputfile.Text)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken {
		return "", fmt.Errorf("token: %s holds %d characters; allowed: at least %d", path, len(token), minToken)
	}
	return token, nil
}

// writeNew writes a file that must not exist.
func writeNew(path string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
