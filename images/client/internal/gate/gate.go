// Package gate lets a server listen only while a client holds its gate open: a connection to a socket in the pod. The kernel
// closes the connection of a client that ends for any reason.
package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

const (
	isOpen  = "open"
	listens = "listening" // the word in the line that the server prints when it listens
)

// Serve runs the server while the gate at this socket is held, until ctx is done. The last holder replaces earlier ones, which
// may be lost without notice.
func Serve(ctx context.Context, socket string, server []string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	leave := func() {}
	for {
		holder, err := listener.Accept()
		leave()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		leave = enter(ctx, holder, server)
	}
}

// enter runs the server until the holder disconnects. leave ends it earlier, and returns when it has ended.
func enter(ctx context.Context, holder net.Conn, server []string) (leave func()) {
	held, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, holder)
		end()
	}()
	go func() {
		defer close(ended)
		defer holder.Close()
		if err := run(held, server, func() { fmt.Fprintln(holder, isOpen) }); held.Err() == nil {
			fmt.Fprintln(holder, err)
		}
	}()
	return func() {
		end()
		<-ended
	}
}

// run runs the server until ctx is done. It is an error if the server ends earlier. run forwards its output.
func run(ctx context.Context, server []string, opened func()) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	command := exec.CommandContext(ctx, server[0], server[1:]...)
	command.Stdout, command.Stderr = writer, writer
	err = command.Start()
	writer.Close()
	if err != nil {
		return err
	}
	var output []string
	for lines, listening := bufio.NewScanner(reader), false; lines.Scan(); {
		fmt.Println(lines.Text())
		if listening {
			continue
		}
		if output = append(output, lines.Text()); strings.Contains(lines.Text(), listens) {
			listening = true
			opened()
		}
	}
	return fmt.Errorf("%s ended (%v): %s", server[0], command.Wait(), strings.Join(output, "; "))
}

// Hold opens the gate at a socket, until the connection is closed. The other side closes it when the server has ended.
func Hold(ctx context.Context, socket string) (net.Conn, error) {
	held, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { held.Close() })()
	output, err := bufio.NewReader(held).ReadString('\n')
	if output = strings.TrimSpace(output); output == isOpen {
		return held, nil
	}
	held.Close()
	if output == "" {
		return nil, fmt.Errorf("the gate is closed: %w", err)
	}
	return nil, errors.New(output)
}
