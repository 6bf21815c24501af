package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	waiting     = 20 * time.Second // then the client asks again
	mostParts   = 64
	mostBarrier = 1000
)

// barriers are the places where the parts of a client wait for one another, by name. The oldest are forgotten.
type barriers struct {
	mutex sync.Mutex
	known map[string]*barrier
	order []string
}

type barrier struct {
	parts  int
	joined map[int]bool
	open   chan struct{}
}

// join adds a part. A part can join repeatedly.
func (b *barriers) join(name string, part, parts int) (*barrier, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	one, known := b.known[name]
	if !known {
		one = &barrier{parts: parts, joined: map[int]bool{}, open: make(chan struct{})}
		if b.known == nil {
			b.known = map[string]*barrier{}
		}
		b.known[name] = one
		if b.order = append(b.order, name); len(b.order) > mostBarrier {
			delete(b.known, b.order[0])
			b.order = b.order[1:]
		}
	}
	if one.parts != parts {
		return nil, fmt.Errorf("barrier %s is for %d parts, not %d", name, one.parts, parts)
	}
	if !one.joined[part] {
		one.joined[part] = true
		if len(one.joined) == parts {
			close(one.open)
		}
	}
	return one, nil
}

func (b *barriers) missing(one *barrier) []int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	missing := []int{}
	for part := range one.parts {
		if !one.joined[part] {
			missing = append(missing, part)
		}
	}
	return missing
}

type meeting struct {
	Name  string `json:"name"`
	Part  int    `json:"part"`
	Parts int    `json:"parts"`
}

// meet answers when all parts have arrived. Otherwise it answers 202, names the missing parts, and the client asks again.
func (a *Agent) meet(writer http.ResponseWriter, request *http.Request) {
	var asked meeting
	err := json.NewDecoder(request.Body).Decode(&asked)
	if err != nil || asked.Name == "" || asked.Parts < 1 || asked.Parts > mostParts || asked.Part < 0 || asked.Part >= asked.Parts {
		refuse(writer, http.StatusBadRequest, "BadRequest", fmt.Sprintf("the request needs name, part, and parts from 1 to %d", mostParts))
		return
	}
	one, err := a.barriers.join(asked.Name, asked.Part, asked.Parts)
	if err != nil {
		refuse(writer, http.StatusConflict, "BarrierMismatch", err.Error())
		return
	}
	timer := time.NewTimer(waiting)
	defer timer.Stop()
	select {
	case <-one.open:
		answer(writer, map[string]any{"open": true})
	case <-request.Context().Done():
	case <-timer.C:
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(writer).Encode(map[string]any{"open": false, "missing": slices.Clip(a.barriers.missing(one))})
	}
}
