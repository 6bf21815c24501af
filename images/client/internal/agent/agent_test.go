package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

const (
	token    = "secret"
	fileSize = 24 << 20
)

// onDisk returns a directory on a real disk, because a tmpfs has no separate page cache.
func onDisk(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("/var/tmp", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	var system unix.Statfs_t
	if err := unix.Statfs(directory, &system); err != nil {
		t.Fatal(err)
	}
	if system.Type == unix.TMPFS_MAGIC {
		t.Fatal("/var/tmp is a tmpfs: this test needs a disk")
	}
	return directory
}

func start(t *testing.T, directory string) string {
	t.Helper()
	agent, err := New(Options{Directory: directory, Token: token, Ports: map[uint16]bool{}, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(agent.Handler())
	t.Cleanup(func() {
		server.Close()
		agent.forget()
	})
	return server.URL
}

func call(t *testing.T, url, bearer, body string, answer any) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, answer); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	return response.StatusCode
}

func writeFile(t *testing.T, directory string) {
	t.Helper()
	file, err := os.Create(filepath.Join(directory, "file.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.CopyN(file, rand.Reader, fileSize); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}

func begin(t *testing.T, url, state string) (residentPartsPerMillion int64) {
	t.Helper()
	var begun map[string]int64
	if status := call(t, url+"/v1/begin", token, fmt.Sprintf(`{"file":"file.bin","cacheState":%q}`, state), &begun); status != http.StatusOK {
		t.Fatalf("%s: status %d", state, status)
	}
	return begun["residentPartsPerMillion"]
}

// A kernel may reclaim pages at any moment, so one of a few tries must succeed.
const tries = 5

func TestCacheStatesAreReached(t *testing.T) {
	directory := onDisk(t)
	writeFile(t, directory)
	url := start(t, directory)
	for range 2 {
		if resident := begin(t, url, "Cold"); resident > coldPerMillion {
			t.Errorf("Cold: %d parts per million are in the page cache", resident)
		}
		if resident := begin(t, url, "Unchanged"); resident > coldPerMillion {
			t.Errorf("Unchanged after Cold: %d parts per million are in the page cache", resident)
		}
		var resident int64
		for try := 0; try < tries && resident < 990_000; try++ {
			resident = begin(t, url, "Warm")
		}
		if resident < 990_000 {
			t.Errorf("Warm: %d parts per million are in the page cache", resident)
		}
	}
}

func TestFileIsReadAgainWhileCacheGrows(t *testing.T) {
	for name, one := range map[string]struct {
		resident []int64
		reads    int
	}{
		"warm after one read":     {[]int64{1_000_000}, 1},
		"warm after two reads":    {[]int64{948_242, 995_000}, 2},
		"larger than memory":      {[]int64{700_000, 700_000}, 2},
		"growing, but never warm": {[]int64{500_000, 600_000, 700_000, 800_000}, 3},
	} {
		reads := 0
		err := readWhileCacheGrows(
			func() error { reads++; return nil },
			func() (int64, error) { return one.resident[reads-1], nil },
		)
		if err != nil || reads != one.reads {
			t.Errorf("%s: read %d times, not %d: %v", name, reads, one.reads, err)
		}
	}
}

func TestCacheWarmingStopsWithItsClient(t *testing.T) {
	directory := onDisk(t)
	writeFile(t, directory)
	agent, err := New(Options{Directory: directory, Token: token, Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, start(t, directory), "Cold")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := agent.prepare(ctx, "file.bin", warm); !errors.Is(err, context.Canceled) {
		t.Errorf("the preparation ended with %v", err)
	}
	if resident := begin(t, start(t, directory), "Unchanged"); resident > coldPerMillion {
		t.Errorf("%d parts per million were read", resident)
	}
}

func TestColdReadIsCountedAtDevice(t *testing.T) {
	directory := onDisk(t)
	writeFile(t, directory)
	url := start(t, directory)
	var sample contract.ServerSample
	for try := 0; try < tries && (try == 0 || *sample.ResidentAfterPartsPerMillion < 990_000); try++ {
		begin(t, url, "Cold")
		if _, err := os.ReadFile(filepath.Join(directory, "file.bin")); err != nil {
			t.Fatal(err)
		}
		sample = contract.ServerSample{}
		if status := call(t, url+"/v1/end", token, "", &sample); status != http.StatusOK {
			t.Fatalf("end: status %d", status)
		}
		if sample.DeviceReadBytes == nil || *sample.DeviceReadBytes < fileSize/100*99 {
			t.Fatalf("the device read %v of %d bytes", sample.DeviceReadBytes, fileSize)
		}
		if *sample.ResidentBeforePartsPerMillion > coldPerMillion {
			t.Errorf("before: %d parts per million", *sample.ResidentBeforePartsPerMillion)
		}
	}
	t.Logf("the device read %d bytes for a file of %d", *sample.DeviceReadBytes, fileSize)
	if *sample.ResidentAfterPartsPerMillion < 990_000 {
		t.Errorf("after: %d parts per million", *sample.ResidentAfterPartsPerMillion)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	directory := onDisk(t)
	if err := os.Symlink("/etc", filepath.Join(directory, "way-out")); err != nil {
		t.Fatal(err)
	}
	url := start(t, directory)
	cases := []struct {
		path, bearer, body string
		status             int
		reason             string
	}{
		{"/v1/begin", "wrong", `{}`, http.StatusUnauthorized, "TokenRefused"},
		{"/v1/begin", "", `{}`, http.StatusUnauthorized, "TokenRefused"},
		{"/v1/begin", token, `{`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"file":"../../etc/passwd"}`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"file":"absent.bin"}`, http.StatusNotFound, "FileNotFound"},
		{"/v1/begin", token, `{"file":"way-out/passwd"}`, http.StatusUnprocessableEntity, "CacheStateFailed"},
		{"/v1/begin", token, `{"file":"file.bin","cacheState":"Hot"}`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"traceMilliseconds":100,"senders":-1}`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"traceMilliseconds":-1}`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"traceMilliseconds":9223372036854775807}`, http.StatusBadRequest, "BadRequest"}, // nanoseconds overflow
		{"/v1/end", token, ``, http.StatusConflict, "NoTrial"},
	}
	for _, one := range cases {
		var failure contract.Failure
		if status := call(t, url+one.path, one.bearer, one.body, &failure); status != one.status || failure.Reason != one.reason {
			t.Errorf("%+v: %d %+v", one, status, failure)
		}
	}
}

func TestLargeHeadersAreRefused(t *testing.T) {
	made, err := New(Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewUnstartedServer(nil)
	listening.Config = made.server()
	listening.Start()
	defer listening.Close()
	for length, status := range map[int]int{100: http.StatusOK, 2 * mostBytes: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequest(http.MethodGet, listening.URL+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X", strings.Repeat("x", length))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%d bytes of headers: %s", length, response.Status)
		}
	}
}

func TestBeginWithoutEndRestartsSampling(t *testing.T) {
	url := start(t, onDisk(t))
	for range 3 {
		var begun map[string]*int64
		if status := call(t, url+"/v1/begin", token, `{}`, &begun); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if running := samplers(); running != 1 {
		t.Errorf("%d samplers run", running)
	}
	var sample contract.ServerSample
	if status := call(t, url+"/v1/end", token, "", &sample); status != http.StatusOK || sample.ResidentBeforePartsPerMillion != nil {
		t.Errorf("status %d, %+v", status, sample)
	}
}

// samplers counts the goroutines that sample round trips.
func samplers() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by tierbench.io/client/internal/agent.sampleRoundTrips")
}

func TestTCPSamplesCoverOnlyServerPorts(t *testing.T) {
	for _, ports := range []map[uint16]bool{{}, {8080: true}} {
		agent, err := New(Options{Directory: t.TempDir(), Token: token, Ports: ports, Interval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if sampled := agent.look().tcp != nil; sampled != (len(ports) > 0) {
			t.Errorf("%d ports: TCP is sampled: %v", len(ports), sampled)
		}
	}
}

func TestSharesCoverTheTimeBetweenSamples(t *testing.T) {
	began := time.Now()
	before := moment{
		at: began, cpu: &cpuTicks{total: 1000, idle: 500, ioWait: 100}, diskRead: pointer(4096), pressure: pointer(2000),
		tcp: &tcpCounters{sent: 10, retransmitted: 1},
	}
	after := moment{
		at: began.Add(10 * time.Millisecond), cpu: &cpuTicks{total: 1200, idle: 600, ioWait: 150}, diskRead: pointer(5120),
		pressure: pointer(4500), tcp: &tcpCounters{sent: 60, retransmitted: 3},
	}
	want := contract.ServerSample{
		IOWaitPartsPerMillion: pointer(250_000), CPUPartsPerMillion: pointer(250_000), DeviceReadBytes: pointer(1024),
		IOPressurePartsPerMillion: pointer(250_000), TCPSegmentsSent: pointer(50), TCPRetransmits: pointer(2),
	}
	if sample := between(before, after); !reflect.DeepEqual(sample, want) {
		encoded, _ := json.Marshal(sample)
		t.Errorf("%s", encoded)
	}
	after.cpu = &cpuTicks{total: 1099, idle: 550, ioWait: 110}
	if sample := between(before, after); sample.CPUPartsPerMillion != nil || sample.IOWaitPartsPerMillion != nil {
		t.Errorf("less than a second of CPU time has shares: %+v", sample)
	}
	if sample := between(moment{}, after); !reflect.DeepEqual(sample, contract.ServerSample{}) {
		t.Errorf("values without a first sample: %+v", sample)
	}
}

func TestParsersReadFilesOfProc(t *testing.T) {
	ticks, err := parseStat("cpu  100 0 50 800 40 0 10 0 7 0\ncpu0 1 2 3\n")
	if err != nil || ticks != (cpuTicks{total: 1000, idle: 800, ioWait: 40}) {
		t.Errorf("%+v %v", ticks, err)
	}
	if _, err := parseStat("intr 5\n"); err == nil {
		t.Error("no error for a file without a cpu line")
	}
	disks := " 254       0 vda 10 0 2000 5 20 0 4000 9\n 254       1 vda1 1 0 8 1 0 0 0 0\n"
	if read, found := parseDiskRead(disks, 254, 0); !found || read != 2000*512 {
		t.Errorf("%d %v", read, found)
	}
	if _, found := parseDiskRead(disks, 0, 44); found {
		t.Error("an anonymous device was found")
	}
	if waited, found := parsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull total=9\n"); !found || waited != 12345 {
		t.Errorf("%d %v", waited, found)
	}
	if _, found := parsePressure(""); found {
		t.Error("an empty file has a pressure")
	}
	snmp := "Ip: A\nIp: 1\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 5000 7\n"
	if counters, found := parseSNMP(snmp); !found || counters != (tcpCounters{sent: 5000, retransmitted: 7}) {
		t.Errorf("%+v %v", counters, found)
	}
}
