package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"tierbench.io/client/internal/contract"
)

// ask makes a request, and returns its answer.
func (p *process) ask(ctx context.Context, one request) (answer, error) {
	asked := make(chan line, 1)
	if err := p.write(&one, asked); err != nil {
		return answer{}, err
	}
	select {
	case found := <-asked:
		if found.Error != nil {
			return found.answer, p.refused(found.Error)
		}
		return found.answer, nil
	case <-p.ended:
		return answer{}, p.failure
	case <-ctx.Done():
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.pending, one.ID)
		return answer{}, ctx.Err()
	}
}

// soon makes a request that an engine answers at once.
func (p *process) soon(ctx context.Context, one request) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	found, err := p.ask(limited, one)
	if ctx.Err() == nil && limited.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		p.fail(p.silent(fmt.Sprintf("did not answer %q", one.Do)))
		<-p.ended
		return found, p.failure
	}
	return found, err
}

// refused returns the error of a request. An error that breaks the protocol ends the engine.
func (p *process) refused(of *trouble) error {
	err := of.failure()
	var failure *contract.Failure
	if errors.As(err, &failure) && failure.Reason == "EngineInvalid" {
		p.fail(failure)
	}
	return err
}

func (p *process) write(one *request, asked chan line) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.failure != nil {
		return p.failure
	}
	p.requests++
	one.ID = p.requests
	p.pending[one.ID] = asked
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	_ = p.input.SetWriteDeadline(time.Now().Add(p.timeout))
	if _, err := p.input.Write(append(text, '\n')); errors.Is(err, os.ErrDeadlineExceeded) {
		go p.fail(p.silent("read nothing"))
	} // other errors: it ends
	return nil
}

// answered forwards the answer to a request.
func (p *process) answered(found line) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	asked, known := p.pending[found.ID]
	if !known {
		if found.ID < 1 || found.ID > p.requests {
			return invalid("it answers a request %d that was not made", found.ID)
		}
		return nil // too late
	}
	for _, nanoseconds := range []int64{found.Connect, found.TLS, found.Compress, found.Encrypt, found.Decrypt, found.Decompress, found.Sent} {
		if nanoseconds < 0 {
			return invalid("an answer has a negative number: %+v", found.answer)
		}
	}
	if _, err := netip.ParseAddrPort(found.Local); found.Local != "" && err != nil {
		return invalid("local is %.100q, not an address with a port", found.Local)
	}
	if found.Cipher != "" && !isName(found.Cipher) {
		return invalid("cipher is %.100q, not the name of a cipher suite", found.Cipher)
	}
	delete(p.pending, found.ID)
	asked <- found
	return nil
}
