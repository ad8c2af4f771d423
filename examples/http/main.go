// Command http serves and fetches web pages over RDMA: an ordinary net/http program needs only another
// listener, or another dialer in its transport.
//
// With a driver running (softvpi up), in two terminals:
//
//	go run ./examples/http -listen 127.0.0.2:8080
//	go run ./examples/http http://127.0.0.2:8080/hello
//
// Without one, each program brings an adapter of its own:
//
//	go run ./examples/http -adapter 127.1.0.1 -listen 127.1.0.1:8080
//	go run ./examples/http -adapter 127.1.0.2 http://127.1.0.1:8080/hello
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/signal"

	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "", "serve at this `address:port`")
	embed := flags.String("adapter", "", "use an adapter of this program at this `address`, not the driver's")
	if err := flags.Parse(args); err != nil {
		return err
	}
	adapter, done, err := open(ctx, *embed)
	if err != nil {
		return err
	}
	defer done()
	switch {
	case *listen != "" && flags.NArg() == 0:
		return serve(ctx, adapter, *listen, stdout)
	case *listen == "" && flags.NArg() == 1:
		return fetch(ctx, adapter, flags.Arg(0), stdout)
	}
	return errors.New("want either -listen or one URL")
}

// open returns the adapter embedded at an address; for an empty address it returns nil, which means the
// default.
func open(ctx context.Context, address string) (*nd.Adapter, func(), error) {
	if address == "" {
		return nil, func() {}, nil
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return nil, nil, err
	}
	provider, err := nd.Open(ctx, nd.Options{
		Mode: verbs.Embedded, Embed: verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: addr}}},
	})
	if err != nil {
		return nil, nil, err
	}
	adapter, err := provider.OpenAdapterAt(addr)
	if err != nil {
		provider.Close()
		return nil, nil, err
	}
	return adapter, func() { provider.Close() }, nil
}

func serve(ctx context.Context, adapter *nd.Adapter, address string, stdout io.Writer) error {
	config := rdmanet.ListenConfig{Adapter: adapter}
	l, err := config.Listen(ctx, address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s, asked for by %s over %s\n", r.URL.Path, r.RemoteAddr, l.Addr().Network())
	})}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	fmt.Fprintln(stdout, "serving at", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func fetch(ctx context.Context, adapter *nd.Adapter, url string, stdout io.Writer) error {
	dialer := rdmanet.Dialer{Adapter: adapter}
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Fprintln(stdout, response.Status)
	_, err = io.Copy(stdout, response.Body)
	return err
}
