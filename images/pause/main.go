// Process 1 of a pod: holds its namespaces, reaps orphans, ends when asked.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended, children := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-ended:
			return
		case <-children:
			reap()
		}
	}
}

func reap() {
	for {
		if child, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); child <= 0 {
			return
		}
	}
}
