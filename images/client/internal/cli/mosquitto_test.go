package cli

import (
	"bytes"
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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/porttest"
)

// mosquitto is a broker on loopback.
type mosquitto struct {
	folder, config string
	port, tlsPort  int
	process        *exec.Cmd
}

// startMosquitto starts a broker with further lines of configuration. Its certificate is valid until `expires`.
func startMosquitto(t *testing.T, expires time.Time, more ...string) *mosquitto {
	t.Helper()
	made := &mosquitto{folder: t.TempDir(), port: porttest.Free(t), tlsPort: porttest.Free(t)}
	writeCertificates(t, made.folder, expires)
	passwords := filepath.Join(made.folder, "passwords")
	if output, err := exec.Command("mosquitto_passwd", "-b", "-c", passwords, "user", "right").CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_passwd (Debian's mosquitto is needed): %v %s", err, output)
	}
	lines := append([]string{
		"user root", "allow_anonymous false", "password_file " + passwords, "set_tcp_nodelay true", "log_type error",
		"max_inflight_messages 0", "max_queued_messages 0", "persistence_location " + made.folder + "/",
	}, more...)
	lines = append(lines, fmt.Sprintf("listener %d 127.0.0.1", made.port), fmt.Sprintf("listener %d 127.0.0.1", made.tlsPort),
		"certfile "+made.folder+"/tls.crt", "keyfile "+made.folder+"/tls.key", "")
	made.config = filepath.Join(made.folder, "mosquitto.conf")
	write(t, made.config, strings.Join(lines, "\n"))
	write(t, filepath.Join(made.folder, "username"), "user")
	write(t, filepath.Join(made.folder, "password"), "right\n")
	write(t, filepath.Join(made.folder, "wrong"), "wrong")
	write(t, filepath.Join(made.folder, "key"), "0123456789abcdef")
	made.start(t)
	t.Cleanup(func() { _ = made.process.Process.Kill() })
	return made
}

func (m *mosquitto) start(t *testing.T) {
	t.Helper()
	m.process = exec.Command("mosquitto", "-c", m.config)
	var output bytes.Buffer
	m.process.Stderr, m.process.Stdout = &output, &output
	begin(t, m.process, syscall.SIGKILL)
	address := fmt.Sprintf("127.0.0.1:%d", m.port)
	eventually(t, "mosquitto answers", func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// restart stops it as a kubelet does, and starts it again.
func (m *mosquitto) restart(t *testing.T) {
	t.Helper()
	sendSignal(t, m.process, syscall.SIGTERM)
	sendSignal(t, m.process, syscall.SIGCONT)
	_ = m.process.Wait()
	m.start(t)
}

func (m *mosquitto) kill(t *testing.T) {
	t.Helper()
	sendSignal(t, m.process, syscall.SIGKILL)
	_ = m.process.Wait()
}

// load returns a load with a number of messages of each publisher.
func (m *mosquitto) load(messages int, more ...string) load {
	return load{
		func(times int) []string {
			return m.arguments("None", append(more, limit, fmt.Sprintf("messages=%d", messages*times))...)
		},
		func() bool { return received(m.port) > loadBytes },
	}
}

// struck returns the outcome of a client whose messages are in flight at the frozen broker when the fault happens.
func (m *mosquitto) struck(t *testing.T, of load, fault func()) outcome {
	t.Helper()
	one := strike{
		loads: []load{of}, trial: 1, freeze: func([]*client) *os.Process { return m.process.Process },
		shows: func() bool { return unread(t, m.port) > ackBytes }, fault: func([]*client) { fault() },
	}
	return one.run(t)[0]
}

// arguments returns the arguments of a client of this broker.
func (m *mosquitto) arguments(tls string, more ...string) []string {
	url := fmt.Sprintf("url=mqtt://127.0.0.1:%d", m.port)
	arguments := []string{"Broker", "usernameFile=" + m.folder + "/username", "passwordFile=" + m.folder + "/password",
		"tls=" + tls, "keyFile=" + m.folder + "/key", "warmRounds=0"}
	if tls != "None" {
		url = fmt.Sprintf("url=mqtts://127.0.0.1:%d", m.tlsPort)
		arguments = append(arguments, "caFile="+m.folder+"/tls.crt", "serverName=broker")
	}
	return append(append(arguments, url), more...)
}

const hang = 5 * time.Minute // longer than anything takes on a busy machine

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// instead returns the arguments with another value of a flag.
func instead(arguments []string, flag string) []string {
	name, _, _ := strings.Cut(flag, "=")
	rest := slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool { return strings.HasPrefix(argument, name+"=") })
	return append(rest, flag)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeCertificates(t *testing.T, folder string, expires time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: expires, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "tls.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "tls.pkcs8"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	write(t, filepath.Join(folder, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
}
