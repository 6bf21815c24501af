package check

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

const (
	questionBytes = 16
	mostAtOnce    = 64 // connections
	timeout       = 5 * time.Second
)

// Answer sends every question back, over TCP and UDP at the same address, until ctx ends. It accepts at most mostAtOnce
// connections at a time, and one question on each.
func Answer(ctx context.Context, address string) error {
	var config net.ListenConfig
	streams, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	packets, err := config.ListenPacket(ctx, "udp", streams.Addr().String())
	if err != nil {
		return errors.Join(err, streams.Close())
	}
	return answer(ctx, streams, packets)
}

func answer(ctx context.Context, streams net.Listener, packets net.PacketConn) error {
	ended := make(chan error, 2)
	go func() { ended <- answerStreams(streams) }()
	go func() { ended <- answerPackets(packets) }()
	var err error
	left := 2
	select {
	case <-ctx.Done():
	case err = <-ended:
		left--
	}
	err = errors.Join(err, streams.Close(), packets.Close())
	for range left {
		<-ended
	}
	return err
}

func answerStreams(listener net.Listener) error {
	free := make(chan struct{}, mostAtOnce)
	for {
		socket, err := listener.Accept()
		if err != nil {
			return err
		}
		free <- struct{}{}
		go func() {
			defer func() { <-free }()
			defer socket.Close()
			if socket.SetDeadline(time.Now().Add(timeout)) == nil {
				_, _ = io.CopyN(socket, socket, questionBytes) // a client that sends nothing gets nothing
			}
		}()
	}
}

func answerPackets(socket net.PacketConn) error {
	question := make([]byte, questionBytes+1)
	for {
		size, sender, err := socket.ReadFrom(question)
		switch {
		case errors.Is(err, net.ErrClosed):
			return err
		case err == nil && size == questionBytes:
			_, _ = socket.WriteTo(question[:size], sender) // a client that gets no answer asks again
		}
	}
}
