package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"tierbench.io/client/internal/link"
)

// TestALargeAnswerIsReadToItsLastByte has a broker that sends an answer in pieces, and nothing after it.
func TestALargeAnswerIsReadToItsLastByte(t *testing.T) {
	const size = 3<<20 + 17
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		for pieces, length := range map[string]int{"at once": size, "in pieces": 100_001} {
			t.Run(name+" "+pieces, func(t *testing.T) {
				ours, theirs := connected(t, secure)
				go func() {
					for left := size; left > 0; left -= length {
						_, _ = theirs.Write(make([]byte, min(left, length)))
						time.Sleep(time.Millisecond)
					}
				}()
				_ = ours.SetReadDeadline(time.Now().Add(30 * time.Second))
				if _, err := io.ReadFull(ours, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = theirs.Write(make([]byte, 4)) }()
				if _, err := io.ReadFull(ours, make([]byte, 4)); err != nil {
					t.Fatal(err)
				}
				if ours.mark != 1 {
					t.Errorf("of a small answer the reader is told at %d bytes", ours.mark)
				}
			})
		}
	}
}

func TestAMarkLeavesOutWhatMayHaveBeenReadAhead(t *testing.T) {
	ours, _ := connected(t, false)
	for missing, wanted := range map[int]int64{4: 1, largeAnswer - 1: 1, largeAnswer: largeAnswer / 2, 100 << 20: mostMark} {
		if got := ours.markFor(missing); got != wanted {
			t.Errorf("%d missing: %d, not %d", missing, got, wanted)
		}
	}
	if got := (&conn{}).markFor(100 << 20); got != 1 {
		t.Errorf("%d for a light load", got)
	}
}

// connected is both ends of a connection, ours as the driver has it.
func connected(t *testing.T, secure bool) (*conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	plain, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close(); theirs.Close() })
	tcp := plain.(*net.TCPConn)
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	over := &link.Link{Conn: tcp, TCP: tcp}
	if secure {
		server := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
		go func() { _ = server.Handshake() }()
		client := tls.Client(tcp, &tls.Config{InsecureSkipVerify: true})
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		over.Conn, theirs = client, server
	}
	return &conn{Link: over, raw: raw, mark: 1}, theirs
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}
