package agent

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

const mostUnauthorized = 64

// unauthorized are the connections that have not shown the token yet, the oldest first. Above a limit the oldest one is
// closed, so that they can use up neither memory nor the place of a client.
type unauthorized struct {
	mutex sync.Mutex
	known []net.Conn
}

// follow handles each new state of a connection.
func (u *unauthorized) follow(connection net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		u.mutex.Lock()
		defer u.mutex.Unlock()
		if u.known = append(u.known, connection); len(u.known) > mostUnauthorized {
			u.known[0].Close()
			u.known = slices.Delete(u.known, 0, 1)
		}
	case http.StateClosed, http.StateHijacked:
		u.forget(connection)
	}
}

func (u *unauthorized) forget(connection net.Conn) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if index := slices.Index(u.known, connection); index >= 0 {
		u.known = slices.Delete(u.known, index, index+1)
	}
}

type connectionKey struct{}

func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// authorize keeps the connection of a request that has shown the token.
func (u *unauthorized) authorize(request *http.Request) {
	if connection, is := request.Context().Value(connectionKey{}).(net.Conn); is {
		u.forget(connection)
	}
}
