package network

import (
	"context"
	"errors"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/sockdiag"
	"tierbench.io/client/internal/wait"
)

const (
	settling   = 3 * time.Second // of a load before its first echo request: TCP's slow start is over
	lookPause  = 50 * time.Millisecond
	stateBytes = 4 // that a server has sent when its load runs: a byte for each state
	late       = "the load ended before all echo requests were sent: raise spec.durationSeconds, or lower ping.count"
)

// loadedPing sends echo requests while a load runs.
type loadedPing struct {
	options *Ping
	port    uint16
	cancel  context.CancelFunc
	began   chan struct{} // closed when the first request is sent
	done    chan struct{}
	running time.Time // a moment before the load was seen
	sent    time.Time // when the last request was sent
	found   pinged
	err     error
}

// pingUnderLoad waits until the load has settled, then sends as many echo requests as before it. It returns nil if none are
// requested.
func pingUnderLoad(ctx context.Context, options *Options) *loadedPing {
	if !options.Ping.UnderLoad || options.Ping.Count == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	pinging := &loadedPing{
		options: &options.Ping, port: options.Port, cancel: cancel, began: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(pinging.done)
		pinging.err = pinging.run(ctx)
	}()
	return pinging
}

func (p *loadedPing) run(ctx context.Context) error {
	watch := watchPort(p.port)
	for p.running = time.Now(); !isRunning(watch.Look()); p.running = time.Now() {
		if err := wait.For(ctx, lookPause); err != nil {
			return err
		}
	}
	if err := wait.For(ctx, settling); err != nil {
		return err
	}
	close(p.began)
	first := time.Now()
	found, err := ping(ctx, p.options)
	p.found, p.sent = found, first.Add(found.sending)
	return err
}

// isRunning reports whether the load of iperf3 runs. Its server has then sent four states on the control connection.
func isRunning(connections []sockdiag.Connection) bool {
	for _, one := range connections {
		if one.Established && one.Info.Bytes_received >= stateBytes {
			return true
		}
	}
	return false
}

// abandon ends the ping without a result, because its load has failed.
func (p *loadedPing) abandon() {
	if p != nil {
		p.cancel()
		<-p.done
	}
}

// end waits for the last answers, and adds them to the trial, whose load took this time. A trial without them has failed.
func (p *loadedPing) end(ctx context.Context, trial *contract.Trial, took time.Duration) error {
	if p == nil {
		return nil
	}
	defer p.cancel()
	select {
	case <-p.began:
	default:
		p.cancel()
	}
	<-p.done
	failure := &contract.Failure{Reason: pingFailed, Message: late}
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case p.err == nil && !p.sent.After(p.running.Add(took)):
		p.found.addUnderLoad(trial)
		return nil
	case errors.As(p.err, &failure) && failure.Reason != pingFailed:
		return failure
	}
	trial.Outcome, trial.Failure = contract.Failed, failure
	return nil
}
