package agent

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

const mostStrangers = 64

// strangers are the connections that have not shown the token yet, the oldest first. Above a limit the oldest is closed, so that
// strangers can take neither memory nor the place of a client.
type strangers struct {
	mutex sync.Mutex
	known []net.Conn
}

// follow handles each new state of a connection.
func (s *strangers) follow(connection net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.known = append(s.known, connection); len(s.known) > mostStrangers {
			s.known[0].Close()
			s.known = slices.Delete(s.known, 0, 1)
		}
	case http.StateClosed, http.StateHijacked:
		s.forget(connection)
	}
}

func (s *strangers) forget(connection net.Conn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if index := slices.Index(s.known, connection); index >= 0 {
		s.known = slices.Delete(s.known, index, index+1)
	}
}

type connectionKey struct{}

func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// introduce keeps the connection of a request that has shown the token.
func (s *strangers) introduce(request *http.Request) {
	if connection, is := request.Context().Value(connectionKey{}).(net.Conn); is {
		s.forget(connection)
	}
}
