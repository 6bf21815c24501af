package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
)

const (
	answerTimeout   = 30 * time.Second // for hello, an answer, and any line
	endTimeout      = time.Second      // from the end of its standard input to the end of the engine
	mostConnections = 1<<16 - 1
	clockReadings   = 5
)

// process is a running engine. One goroutine reads its lines, and calls the callbacks of all connections.
type process struct {
	program string
	timeout time.Duration
	command *exec.Cmd
	input   *os.File
	log     *log
	hello   hello
	base    time.Time // of this clock
	at      int64     // of CLOCK_MONOTONIC at base
	greeted chan struct{}
	ended   chan struct{}
	spoke   atomic.Bool

	mutex       sync.Mutex
	requests    int
	pending     map[int]chan line
	connections map[uint16]*connection
	last        uint16
	failure     *contract.Failure // why it has ended
}

// start starts an engine, which has yet to send hello.
func start(program string, content *os.File, timeout time.Duration) (*process, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, &contract.Failure{Reason: "ProgramMissing", Message: fmt.Sprintf("there is no engine %s: %v: install it in a folder of PATH", program, err)}
	}
	theirs, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	made := &process{
		program: program, timeout: timeout, input: input, log: &log{out: os.Stderr}, greeted: make(chan struct{}), ended: make(chan struct{}),
		pending: map[int]chan line{}, connections: map[uint16]*connection{},
	}
	if made.base, made.at, err = clock(); err != nil {
		return nil, err
	}
	made.command = exec.Command(path)
	made.command.Stdin, made.command.Stderr, made.command.ExtraFiles = theirs, made.log, []*os.File{content}
	made.command.WaitDelay = endTimeout
	made.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := made.command.StdoutPipe()
	if err == nil {
		err = made.command.Start()
	}
	if err != nil {
		input.Close()
		return nil, &contract.Failure{Reason: "EngineFailed", Message: fmt.Sprintf("the engine %s does not start: %v", program, err)}
	}
	go made.read(output)
	go made.watch()
	return made, nil
}

// meet returns when an engine has sent hello. A slow engine may need longer than one attempt to connect: then a later
// attempt meets it.
func (p *process) meet(ctx context.Context) error {
	select {
	case <-p.greeted:
		return nil
	case <-p.ended:
		return p.failure
	case <-ctx.Done():
		return fmt.Errorf("the engine %s has not sent hello yet: %w", p.program, ctx.Err())
	}
}

// clock returns a time, and CLOCK_MONOTONIC at that time. It takes the best of several readings, because a reading may be
// interrupted.
func clock() (base time.Time, at int64, err error) {
	narrowest := time.Hour
	for range clockReadings {
		var now unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return base, 0, fmt.Errorf("clock: %w", err)
		}
		if took := time.Since(before); took < narrowest {
			narrowest, base, at = took, before.Add(took/2), now.Nano()
		}
	}
	return base, at, nil
}

// stamp returns CLOCK_MONOTONIC at a time.
func (p *process) stamp(at time.Time) int64 { return p.at + at.Sub(p.base).Nanoseconds() }

func (p *process) time(stamp int64) time.Time { return p.base.Add(time.Duration(stamp - p.at)) }

func (p *process) silent(what string) *contract.Failure {
	return &contract.Failure{Reason: "EngineSilent", Message: fmt.Sprintf("the engine %s %s for %v%s", p.program, what, p.timeout, p.log.tail())}
}

// fail ends an engine with a reason. Only the first one counts.
func (p *process) fail(failure *contract.Failure) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	select {
	case <-p.ended:
		return
	default:
	}
	if p.failure == nil {
		p.failure = failure
	}
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
}

// end asks an engine to end, and waits for that.
func (p *process) end() {
	p.input.Close()
	select {
	case <-p.ended:
	case <-time.After(endTimeout):
		p.fail(&contract.Failure{Reason: "EngineFailed", Message: "the engine did not end"})
		<-p.ended
	}
}

// watch ends an engine that writes nothing. It counts seconds in which this program runs, because both may have been
// suspended.
func (p *process) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for quiet := time.Duration(0); quiet < p.timeout; quiet += time.Second {
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
		if p.spoke.Swap(false) {
			quiet = -time.Second
		}
	}
	p.fail(p.silent("wrote nothing"))
}

// read reads the lines of an engine until it ends.
func (p *process) read(output io.Reader) {
	lines := bufio.NewReaderSize(output, lineBytes)
	for {
		text, err := lines.ReadSlice('\n')
		p.spoke.Store(true)
		if err == nil {
			err = p.take(text)
		} else if errors.Is(err, bufio.ErrBufferFull) {
			err = invalid("a line has more than %d bytes", lineBytes)
		}
		var failure *contract.Failure
		if errors.As(err, &failure) {
			p.fail(failure)
		}
		if err != nil {
			break
		}
	}
	_, _ = io.Copy(io.Discard, lines) // of an engine that is not killed yet
	p.reap(p.command.Wait())
}

// reap answers all requests when an engine has ended.
func (p *process) reap(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.failure == nil {
		p.failure = &contract.Failure{Reason: "EngineFailed", Message: fmt.Sprintf("the engine %s ended (%v)%s", p.program, ending(err), p.log.tail())}
	}
	p.input.Close()
	close(p.ended)
}

func ending(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// take handles a line. Its error ends the engine.
func (p *process) take(text []byte) error {
	var found line
	if err := json.Unmarshal(text, &found); err != nil {
		return invalid("%v in the line %.200q", err, text)
	}
	switch {
	case found.Hello != nil:
		return p.greet(found.Hello)
	case p.hello.Protocol == 0:
		return invalid("its first line is not hello: %.200q", text)
	case found.Failed != nil:
		failed := &contract.Failure{}
		if !errors.As(found.Failed.failure(), &failed) {
			return &contract.Failure{Reason: "EngineFailed", Message: found.Failed.Message}
		}
		return failed
	case found.Events != nil:
		return p.happened(found.Events)
	case found.Down != 0:
		return p.with(found.Down, func(one *connection) error { return one.goesDown(found.TCPInfo) })
	case found.Up != 0:
		return p.with(found.Up, func(one *connection) error { return one.comesUp(found.Resent) })
	case found.ID != 0:
		return p.answered(found)
	}
	return nil
}

func (p *process) greet(found *hello) error {
	now := p.stamp(time.Now())
	switch {
	case p.hello.Protocol != 0:
		return invalid("it says hello again")
	case found.Protocol != protocol:
		return &contract.Failure{Reason: "EngineInvalid", Message: fmt.Sprintf("the engine %s speaks version %d of the protocol, and this client %d: use images of one release", p.program, found.Protocol, protocol)}
	case !isName(found.Name) || !isName(found.Version):
		return invalid("its name %.100q and version %.100q do not have 1 to %d printable characters each", found.Name, found.Version, wordBytes)
	case found.Clock < p.at || found.Clock > now:
		return invalid("its clock is not CLOCK_MONOTONIC: it says %d, between %d and %d", found.Clock, p.at, now)
	case found.Processors < 0:
		return invalid("processors is %d", found.Processors)
	}
	p.hello = *found
	close(p.greeted)
	return nil
}

// happened forwards events.
func (p *process) happened(records []byte) error {
	if len(records)%recordBytes != 0 {
		return invalid("%d bytes of events are not a multiple of %d", len(records), recordBytes)
	}
	now := p.stamp(time.Now())
	for record := range slices.Chunk(records, recordBytes) {
		one := decode(record)
		if one.at < p.hello.Clock || one.at > now {
			return invalid("the time %d of an event is not from %d to now, %d", one.at, p.hello.Clock, now)
		}
		err := p.with(one.connection, func(of *connection) error { return of.happened(one, p.time(one.at)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// with calls a function with a connection. Events of a closed connection are ignored.
func (p *process) with(number uint16, do func(*connection) error) error {
	p.mutex.Lock()
	one, last := p.connections[number], p.last
	p.mutex.Unlock()
	switch {
	case one != nil:
		return do(one)
	case number == 0 || number > last:
		return invalid("there is no connection %d", number)
	}
	return nil
}

// add gives a connection a number.
func (p *process) add(name string, events broker.Events) (*connection, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.connections) == mostConnections {
		return nil, errors.New("an engine has at most 65535 connections")
	}
	number := p.last
	for {
		if number++; number == 0 {
			continue
		}
		if _, taken := p.connections[number]; !taken {
			break
		}
	}
	p.last = max(p.last, number)
	made := &connection{process: p, number: number, name: name, events: events}
	p.connections[number] = made
	return made, nil
}

func (p *process) remove(one *connection) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.connections, one.number)
}

// cpu returns the CPU time that an engine has used: by the CPU-time clock of its process ID.
func (p *process) cpu() time.Duration {
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^p.command.Process.Pid<<3|2), &spent); err != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}
