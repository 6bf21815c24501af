package engine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
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

// process returns the running engine.
func (e *Engine) process(ctx context.Context) (*process, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.running != nil {
		select {
		case <-e.running.ended:
		default:
			return e.running, nil
		}
	}
	made, err := start(ctx, e.program, e.content, e.timeout)
	if err == nil {
		e.running, e.last = made, made.hello
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
	Scheme  string
	Broker  Broker
	Refused egress.Networks
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
	if len(d.Refused) > 0 {
		if to.Host, err = d.Refused.Resolve(ctx, to.Host); err != nil {
			return nil, err
		}
	}
	made, err := running.add(name, events)
	if err != nil {
		return nil, err
	}
	made.delivery = to.Delivery
	if err := made.connect(ctx, &to, &d.Engine.layout); err != nil {
		running.remove(made)
		if ctx.Err() != nil {
			go func() { _, _ = running.soon(context.Background(), made.request("close")) }()
			err = fmt.Errorf("%s does not answer: %w", d.Broker.Host, err)
		}
		return nil, err
	}
	return made, nil
}

// check refuses what the engine cannot do.
func (d *Driver) check(of *hello) error {
	for _, one := range []struct {
		field, value string
		can          []string
	}{
		{"the scheme of url", d.Scheme, of.Schemes},
		{"delivery", d.Broker.Delivery, of.Deliveries},
		{"compression", d.Broker.Compression, of.Compressions},
		{"encryption", d.Broker.Encryption, of.Encryptions},
	} {
		if !slices.Contains(one.can, one.value) {
			message := fmt.Sprintf("%s is %s, and the engine %s has only %.200q: choose one of them, or another engine", one.field, one.value, of.Name, one.can)
			return &contract.Failure{Reason: "InvalidArguments", Message: message}
		}
	}
	return nil
}
