// Openapi prints the OpenAPI description of the management interface, which a driver serves as /openapi.json.
package main

import (
	"fmt"
	"os"

	"github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/events"
)

func main() {
	log := events.Open(events.Config{})
	defer log.Close()
	s := server.New(server.Config{Version: "any", Events: log,
		Counters: collector.New(collector.Config{Read: func() []collector.Adapter { return nil }})})
	text, err := s.OpenAPI()
	if err == nil {
		_, err = fmt.Println(string(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}
