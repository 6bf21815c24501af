package cli

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/porttest"
)

const kafkaConfig = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
controller.listener.names=CONTROLLER
inter.broker.listener.name=OPEN
listeners=PLAIN://127.0.0.1:%[3]d,SECURED://127.0.0.1:%[4]d,OPEN://127.0.0.1:%[5]d,MUTUAL://127.0.0.1:%[6]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAIN://broker:1,SECURED://broker:2,MUTUAL://broker:3,OPEN://127.0.0.1:%[5]d
listener.security.protocol.map=PLAIN:SASL_PLAINTEXT,SECURED:SASL_SSL,MUTUAL:SASL_SSL,OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.plain.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secured.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secured.ssl.keystore.type=PEM
listener.name.secured.ssl.keystore.location=%[1]s/tls.pem
listener.name.mutual.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.mutual.ssl.keystore.type=PEM
listener.name.mutual.ssl.keystore.location=%[1]s/tls.pem
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.truststore.type=PEM
listener.name.mutual.ssl.truststore.location=%[1]s/tls.crt
log.dirs=%[1]s/data
auto.create.topics.enable=false
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=1000
log.cleaner.dedupe.buffer.size=16777216
message.max.bytes=3000000
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
`

var jars = sync.OnceValues(func() (string, error) {
	folder, err := filepath.Abs("../../../../build/kafka")
	if err != nil {
		return "", err
	}
	if output, err := exec.Command("../../../../tools/kafka", folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tools/kafka: %w %s", err, output)
	}
	return filepath.Join(folder, "*"), nil
})

// kafkaBroker is a broker on loopback that advertises another name.
type kafkaBroker struct {
	folder        string
	port, tlsPort int
	mutualPort    int    // where clients need certificates
	openPort      int    // where clients need no account, and the advertised address is its own
	topic         string // of the load that was started last
	process       *exec.Cmd
	ended         chan struct{}
}

func startKafka(t *testing.T, more ...string) *kafkaBroker {
	t.Helper()
	made := &kafkaBroker{folder: t.TempDir(), port: porttest.Free(t), tlsPort: porttest.Free(t), openPort: porttest.Free(t), mutualPort: porttest.Free(t)}
	writeCertificates(t, made.folder, later)
	issueCertificate(t, made.folder)
	write(t, filepath.Join(made.folder, "tls.pem"), string(read(t, made.folder+"/tls.pkcs8"))+string(read(t, made.folder+"/tls.crt")))
	write(t, filepath.Join(made.folder, "username"), "user")
	write(t, filepath.Join(made.folder, "password"), "right\n")
	write(t, filepath.Join(made.folder, "wrong"), "wrong")
	write(t, filepath.Join(made.folder, "key"), "0123456789abcdef")
	config := fmt.Sprintf(kafkaConfig, made.folder, porttest.Free(t), made.port, made.tlsPort, made.openPort, made.mutualPort) + strings.Join(more, "\n")
	write(t, filepath.Join(made.folder, "server.properties"), config)
	write(t, filepath.Join(made.folder, "account"), "SCRAM-SHA-512=[name=user,password=right]")
	format := made.java(t, "kafka.tools.StorageTool", "format", "--cluster-id=dGllcmJlbmNoLWthZmthMQ",
		"--config="+made.folder+"/server.properties", "--add-scram", "@"+made.folder+"/account")
	if output, err := format.CombinedOutput(); err != nil {
		t.Fatalf("format: %v %s", err, output)
	}
	made.start(t)
	t.Cleanup(func() { _ = made.process.Process.Kill() })
	return made
}

func (k *kafkaBroker) java(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	path, err := jars()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command("java", append([]string{"-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path}, arguments...)...)
}

func (k *kafkaBroker) start(t *testing.T) {
	t.Helper()
	k.process = k.java(t, "kafka.Kafka", k.folder+"/server.properties")
	var output bytes.Buffer
	k.process.Stderr, k.process.Stdout = &output, &output
	begin(t, k.process, syscall.SIGKILL)
	address := fmt.Sprintf("127.0.0.1:%d", k.port)
	k.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan<- struct{}) {
		_ = process.Wait()
		close(ended)
	}(k.process, k.ended)
	eventually(t, "Kafka answers", func() bool {
		select {
		case <-k.ended:
			t.Fatalf("Kafka ended: %s", output.String())
		default:
		}
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (k *kafkaBroker) kill(t *testing.T) {
	t.Helper()
	sendSignal(t, k.process, syscall.SIGKILL)
	<-k.ended
}

// arguments returns the arguments of a client of this broker.
func (k *kafkaBroker) arguments(tls string, more ...string) []string {
	url := fmt.Sprintf("url=kafka://127.0.0.1:%d", k.port)
	arguments := []string{"Broker", "usernameFile=" + k.folder + "/username", "passwordFile=" + k.folder + "/password",
		"tls=" + tls, "keyFile=" + k.folder + "/key", "serverName=broker", "warmRounds=0"}
	if tls != "None" {
		url = fmt.Sprintf("url=kafkas://127.0.0.1:%d", k.tlsPort)
		arguments = append(arguments, "caFile="+k.folder+"/tls.crt")
	}
	return append(append(arguments, url), more...)
}
