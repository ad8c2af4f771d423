package rdmanet_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// adapters embeds two adapters in this process, at free addresses. A
// program that leaves Dialer.Adapter and ListenConfig.Adapter nil needs none of
// this: it uses the driver's adapters, or one of its own.
func adapters() (server, client *nd.Adapter, at netip.Addr, closeAll func()) {
	addrs := testbed.Addrs()
	provider, err := nd.Open(context.Background(), nd.Options{
		Mode:  verbs.Embedded,
		Embed: verbs.Config{Adapters: testbed.Adapters(addrs)},
	})
	if err != nil {
		log.Fatal(err)
	}
	if server, err = provider.OpenAdapterAt(addrs[0]); err != nil {
		log.Fatal(err)
	}
	if client, err = provider.OpenAdapterAt(addrs[1]); err != nil {
		log.Fatal(err)
	}
	return server, client, addrs[0], func() { provider.Close() }
}

// HTTP over RDMA: the server serves on a listener, the client's transport dials.
func Example_http() {
	serverAdapter, clientAdapter, at, closeAll := adapters()
	defer closeAll()
	ctx := context.Background()

	config := rdmanet.ListenConfig{Adapter: serverAdapter}
	l, err := config.Listen(ctx, netip.AddrPortFrom(at, 8080).String())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s over RDMA", r.URL.Path)
	})}
	go server.Serve(l)

	dialer := rdmanet.Dialer{Adapter: clientAdapter}
	transport := &http.Transport{DialContext: dialer.DialContext}
	client := &http.Client{Transport: transport}
	response, err := client.Get(fmt.Sprintf("http://%s/hello", l.Addr()))
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Status, string(body))

	transport.CloseIdleConnections()
	server.Shutdown(ctx)
	// Output: 200 OK /hello over RDMA
}

func ExampleDialer() {
	serverAdapter, clientAdapter, at, closeAll := adapters()
	defer closeAll()
	ctx := context.Background()

	config := rdmanet.ListenConfig{Adapter: serverAdapter}
	l, err := config.Listen(ctx, netip.AddrPortFrom(at, 0).String())
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() { // an echo server
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(c, c)
	}()

	dialer := rdmanet.Dialer{Adapter: clientAdapter}
	c, err := dialer.Dial(ctx, l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "hello")
	c.CloseWrite()
	echo, err := io.ReadAll(c)
	fmt.Println(string(echo), err)
	// Output: hello <nil>
}
