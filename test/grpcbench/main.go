// Grpcbench is a worker of softvpi bench that also offers and calls a gRPC service. It is a module of its own, so that
// neither softvpi nor programs that use its packages depend on gRPC.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/softvpi/softvpi/internal/bench/worker"
)

func main() {
	worker.Services["grpc"] = service{}
	if err := worker.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grpcbench:", err)
		os.Exit(1)
	}
}

// method is the only method; its answer is its request.
const method = "/bench.Echo/Call"

var description = grpc.ServiceDesc{
	ServiceName: "bench.Echo", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(_ any, _ context.Context, decode func(any) error,
		_ grpc.UnaryServerInterceptor) (any, error) {
		var b []byte
		err := decode(&b)
		return &b, err
	}}},
}

// raw passes messages as they are.
type raw struct{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = raw{}

// service is a unary call.
type service struct{}

func (service) Serve(l net.Listener) error {
	s := grpc.NewServer(grpc.ForceServerCodecV2(raw{}))
	s.RegisterService(&description, struct{}{})
	return s.Serve(l)
}

func (service) Client(dial worker.Dial, bytes int) (call, close func() error, err error) {
	c, err := grpc.NewClient("passthrough:///service", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		return nil, nil, err
	}
	out := make([]byte, bytes)
	call = func() error {
		var in []byte
		if err := c.Invoke(context.Background(), method, &out, &in); err != nil {
			return err
		}
		if len(in) != bytes {
			return fmt.Errorf("%d bytes were answered, want %d", len(in), bytes)
		}
		return nil
	}
	if err := call(); err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return call, c.Close, nil
}
