// Command tierbench-client makes load, samples the node of a server, and prepares files to serve.
package main

import (
	"os"

	"tierbench.io/client/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
