package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"tierbench.io/client/internal/contract"
)

const dying = 2 * time.Second // for a program to end after a signal

// run runs a program to its end, and returns its output. The caller interprets the exit code. It returns an error if the program
// could not run or missed the deadline, or context.Canceled.
func run(ctx context.Context, limit time.Duration, name string, arguments ...string) (written, stderr []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(limited, name, arguments...)
	command.Env = append(command.Environ(), "LC_ALL=C")
	command.WaitDelay = dying
	var out, message bytes.Buffer
	command.Stdout, command.Stderr = &out, &message
	err = command.Run()
	var code *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = context.Canceled
	case limited.Err() != nil:
		err = context.DeadlineExceeded
	case errors.As(err, &code):
		err = nil
	case err != nil:
		err = &contract.Failure{Reason: "ProgramMissing", Message: fmt.Sprintf("%v: the network image has it", err)}
	}
	return out.Bytes(), bytes.TrimSpace(message.Bytes()), err
}
