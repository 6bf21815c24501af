package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/payload"
)

const (
	prefix     = "tierbench-engine-"
	atMostOnce = "AtMostOnce"

	usualVersion = "3.1.1" // of MQTT, which every engine for MQTT has

	locateTimeout = 10 * time.Second
)

// Engine is a program that is started with the first connection, and again after it has ended early.
type Engine struct {
	program string
	content *os.File
	layout  Content
	timeout time.Duration

	mutex   sync.Mutex
	running *process
	last    hello
}

// New returns an engine by its name, for messages with the content of a pool.
func New(name string, pool *payload.Pool) (*Engine, error) {
	made := &Engine{program: prefix + name, timeout: answerTimeout}
	made.layout.Entries, made.layout.Sizes = pool.Sizes()
	descriptor, err := unix.MemfdCreate("content", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	made.content = os.NewFile(uintptr(descriptor), "content")
	_, err = pool.WriteTo(made.content)
	return made, err
}

// process returns the running engine when it has sent hello.
func (e *Engine) process(ctx context.Context) (*process, error) {
	running, err := e.start()
	if err != nil {
		return nil, err
	}
	if err := running.meet(ctx); err != nil {
		return nil, err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.last = running.hello
	return running, nil
}

// start returns the running engine, which is a new one if the last one has ended.
func (e *Engine) start() (*process, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.running != nil {
		select {
		case <-e.running.ended:
		default:
			return e.running, nil
		}
	}
	made, err := start(e.program, e.content, e.timeout)
	if err == nil {
		e.running = made
	}
	return made, err
}

// Maker returns the engine for the seal. It is this program if no engine has run.
func (e *Engine) Maker() contract.Engine {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.last.Name == "" {
		return contract.Engine{Name: prefix[:len(prefix)-1], Version: contract.EngineVersion, Architecture: runtime.GOARCH}
	}
	return contract.Engine{Name: e.last.Name, Version: e.last.Version, Architecture: runtime.GOARCH}
}

// CPU returns the CPU time of the running engine.
func (e *Engine) CPU() time.Duration {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.running == nil {
		return 0
	}
	return e.running.cpu()
}

// Processors returns how many processors the engine can use at once.
func (e *Engine) Processors() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.last.Processors == 0 {
		return runtime.NumCPU()
	}
	return e.last.Processors
}

// Close ends the engine.
func (e *Engine) Close() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.running != nil {
		e.running.end()
	}
}

// Driver connects to one broker by an engine.
type Driver struct {
	Engine  *Engine
	Broker  Broker
	Refused egress.Networks

	mutex   sync.Mutex
	address string // at which the broker was reached
}

// Connect makes a connection. Its error is a *contract.Failure if a retry cannot succeed.
func (d *Driver) Connect(ctx context.Context, name string, events broker.Events) (broker.Connection, error) {
	running, err := d.Engine.process(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.check(&running.hello); err != nil {
		return nil, err
	}
	to := d.Broker
	if to.Host, err = d.locate(ctx); err != nil {
		return nil, err
	}
	made, err := running.add(name, events)
	if err != nil {
		return nil, err
	}
	made.delivery = to.Delivery
	if err := made.connect(ctx, &to, &d.Engine.layout); err != nil {
		running.remove(made)
		d.remember("")
		if ctx.Err() != nil {
			go func() { _, _ = running.soon(context.Background(), made.request("close")) }()
			err = fmt.Errorf("%s does not answer: %w", d.Broker.Host, err)
		}
		return nil, err
	}
	return made, nil
}

// locate returns the address at which the broker is reached, so that engines look up no names while they connect. No engine
// connects to a refused address.
func (d *Driver) locate(ctx context.Context) (string, error) {
	d.mutex.Lock()
	known := d.address
	d.mutex.Unlock()
	if known != "" {
		return known, nil
	}
	limit, cancel := context.WithTimeout(ctx, locateTimeout)
	defer cancel()
	found, err := d.Refused.Dialer().DialContext(limit, "tcp", net.JoinHostPort(d.Broker.Host, strconv.Itoa(d.Broker.Port)))
	if err != nil {
		var refused *contract.Failure
		if errors.As(err, &refused) {
			return "", refused
		}
		return "", err
	}
	defer found.Close()
	known = found.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().String()
	d.remember(known)
	return known, nil
}

func (d *Driver) remember(address string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.address = address
}

// check refuses what the engine cannot do.
func (d *Driver) check(of *hello) error {
	for _, one := range []struct {
		field, value string
		can          []string
	}{
		{"the scheme of url", d.Broker.Scheme, of.Schemes},
		{"delivery", d.Broker.Delivery, of.Deliveries},
		{"compression", d.Broker.Compression, of.Compressions},
		{"encryption", d.Broker.Encryption, of.Encryptions},
		{"mqtt.version", cmp.Or(d.Broker.MQTTVersion, usualVersion), slices.Concat([]string{usualVersion}, of.MQTTVersions)},
	} {
		if !slices.Contains(one.can, one.value) {
			message := fmt.Sprintf("%s is %s, and the engine %s has only %.200q: choose one of them, or another engine", one.field, one.value, of.Name, one.can)
			return &contract.Failure{Reason: "InvalidArguments", Message: message}
		}
	}
	return nil
}
