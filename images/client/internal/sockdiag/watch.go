package sockdiag

import "time"

const (
	early = time.Second // connections mostly begin when a watch does
	pause = time.Second // until the watch looks for others again
)

// Watch follows some connections. It searches for them often at first, and then once per second. Known connections are requested
// individually, because a search through all connections of the machine costs many times as much.
type Watch struct {
	wanted   func(local, remote uint16) bool // by their ports
	begun    time.Time
	complete bool
	looked   time.Time // for others than those that are known
	known    []Connection
}

// NewWatch returns a watch of the connections whose ports are wanted.
func NewWatch(wanted func(local, remote uint16) bool) *Watch {
	return &Watch{wanted: wanted, begun: time.Now()}
}

// Complete ends the frequent search, because all expected connections are known.
func (w *Watch) Complete() { w.complete = true }

// Look returns the current state of the connections.
func (w *Watch) Look() []Connection {
	now := time.Now()
	if (w.complete || now.Sub(w.begun) > early) && now.Sub(w.looked) < pause {
		if w.known = w.follow(); len(w.known) > 0 {
			return w.known
		}
	}
	w.known, w.looked = w.find(), now
	return w.known
}

// follow requests each known connection, and drops those that have ended.
func (w *Watch) follow() []Connection {
	var found []Connection
	for index := range w.known {
		found = append(found, w.known[index].again()...)
	}
	return found
}

func (w *Watch) find() []Connection {
	var found []Connection
	for _, one := range all() {
		if w.wanted(one.Local, one.Remote) {
			found = append(found, one)
		}
	}
	return found
}
