package engine

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const fault = "TIERBENCH_TEST_ENGINE"

// TestMain lets the test program run as an engine, whose broker is a map in its memory.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), prefix) {
		fake(os.Getenv(fault))
		return
	}
	os.Exit(m.Run())
}

// install puts the engine `fake` with a fault into PATH.
func install(t *testing.T, of string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(program, filepath.Join(folder, prefix+"fake")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	t.Setenv(fault, of)
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

func fake(of string) {
	clock, version := monotonic(), protocol
	switch of {
	case "another clock":
		clock = time.Now().UnixNano()
	case "another version":
		version = 2
	case "no hello":
		fmt.Println(`{"id": 1}`)
	case "no JSON":
		fmt.Println("hello")
	case "a long line":
		fmt.Println(strings.Repeat(" ", lineBytes))
	case "a slow start":
		time.Sleep(time.Second)
	case "a failed start":
		fmt.Fprintln(os.Stderr, "no module named paho")
		os.Exit(3)
	}
	fmt.Printf(`{"hello": {"protocol": %d, "name": "fake", "version": "1", "clock": %d, "processors": 1, "prepares": true, "schemes": ["mqtt"], `+
		`"deliveries": ["AtMostOnce", "AtLeastOnce"], "compressions": ["None", "Own"], "encryptions": ["None"]}}`+"\n", version, clock)
	made := &fakeEngine{of, map[string]uint16{}, map[uint16]bool{}, map[uint16]bool{}, map[string]bool{}}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var asked request
		asked.Broker, asked.Content, asked.course = &Broker{}, &Content{}, &course{}
		if err := json.Unmarshal(input.Bytes(), &struct {
			*request
			*Broker
			*Content
			*course
		}{&asked, asked.Broker, asked.Content, asked.course}); err != nil {
			panic(err)
		}
		made.do(asked)
	}
}

type fakeEngine struct {
	fault        string
	subscribers  map[string]uint16
	acknowledges map[uint16]bool
	receives     map[uint16]bool
	prepared     map[string]bool
}

func (f *fakeEngine) do(asked request) {
	body := ""
	switch asked.Do {
	case "connect":
		f.acknowledges[asked.Connection], f.receives[asked.Connection] = asked.Delivery == "AtLeastOnce", asked.Receives
		body = `, "connectNanoseconds": 1000, "local": "127.0.0.1:1", "cipher": "own"`
		switch f.fault {
		case "no answer":
			for range time.Tick(time.Second / 10) {
				fmt.Println("{}")
			}
		case "its own reason":
			body = `, "error": {"reason": "LicenseExpired", "message": "renew it"}`
		case "an invalid reason":
			body = `, "error": {"reason": "license expired", "message": "renew it"}`
		case "an address without a port":
			body = `, "local": "somewhere"`
		case "it cannot continue":
			fmt.Println(`{"failed": {"reason": "LicenseExpired", "message": "renew it"}}`)
		}
	case "subscribe":
		f.subscribers[asked.Topic] = asked.Connection
		if !f.receives[asked.Connection] {
			body = `, "error": {"reason": "NotForReceiving", "message": "connect did not ask for it"}`
		}
	case "prepare":
		f.prepared[asked.Topic] = true
	case "count", "close":
		body = `, "compressNanoseconds": 5000, "otherTcpInfos": ["AA==", "AA=="]`
	case "send":
		if probes := asked.Messages == 1; !probes && !f.prepared[asked.Topic] {
			body = `, "error": {"reason": "NotPrepared", "message": "the load has begun"}`
			break
		}
		body = fmt.Sprintf(`, "sent": %d`, f.run(asked))
	}
	fmt.Printf(`{"id": %d%s}`+"\n", asked.ID, body)
	if f.fault == "silence" {
		select {}
	}
}

// run sends messages, which arrive at once.
func (f *fakeEngine) run(asked request) (messages int64) {
	if f.fault == "a crash" && asked.Bytes == 0 {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(3)
	}
	var records []byte
	record := func(kind, connection uint16, number uint64, at int64) {
		records = binary.LittleEndian.AppendUint16(records, kind)
		records = binary.LittleEndian.AppendUint16(records, connection)
		records = binary.LittleEndian.AppendUint32(records, 10)
		records = binary.LittleEndian.AppendUint64(records, number)
		records = binary.LittleEndian.AppendUint64(records, uint64(at))
	}
	for messages < asked.Messages {
		number, at := asked.First+uint64(messages), monotonic()
		switch f.fault {
		case "a gap":
			number++
		case "a time in the future":
			at += int64(time.Hour)
		case "an unknown connection":
			record(arrived, 77, 0, at)
		case "an unknown kind":
			record(9, asked.Connection, 0, at)
		}
		record(sent, asked.Connection, number, at)
		if f.acknowledges[asked.Connection] {
			record(acknowledged, asked.Connection, number, monotonic())
		}
		if subscriber, is := f.subscribers[asked.Topic]; is {
			record(arrived, subscriber, number, monotonic())
		}
		messages++
	}
	switch f.fault {
	case "half a record":
		records = records[:recordBytes/2]
	case "one message too many":
		record(sent, asked.Connection, asked.First+uint64(messages), monotonic())
	case "a wrong number":
		messages--
	}
	for rest := records; len(rest) > 0; {
		piece := rest[:min(len(rest), 1000*recordBytes)]
		rest = rest[len(piece):]
		fmt.Printf(`{"events": "%s"}`+"\n", base64.StdEncoding.EncodeToString(piece))
	}
	return messages
}
