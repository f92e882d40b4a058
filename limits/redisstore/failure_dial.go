package redisstore

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialAnew makes a client dial whenever it needs a connection. By itself its pool stops dialling when that has failed as often
// as it is large, tries once a second in the background, and answers with the last error meanwhile; so it would find out up
// to a second late that a server is back. The Guard sees to it that a server that is down is not dialled often.
func dialAnew(client redis.UniversalClient) {
	switch c := client.(type) {
	case *redis.Client:
		c.AddHook(anew{})
	case *redis.ClusterClient:
		c.OnNewNode(func(node *redis.Client) { node.AddHook(anew{}) })
	}
}

// anew hands the pool a connection that does not work instead of the error that it would count.
type anew struct{}

func (anew) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			return lean(conn), nil
		}
		return unreachable{fmt.Errorf("nobody there: %w", dialError(network, err))}, nil // the client unwraps once
	}
}

func (anew) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (anew) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dialError makes err one that says that it comes from dialling, so that it is known that nothing was sent.
func dialError(network string, err error) error {
	if o, ok := err.(*net.OpError); ok && o.Op == "dial" {
		return err
	}
	return &net.OpError{Op: "dial", Net: network, Err: err}
}

// unreachable is a connection to where nobody is.
type unreachable struct{ err error }

func (u unreachable) Read([]byte) (int, error)  { return 0, u.err }
func (u unreachable) Write([]byte) (int, error) { return 0, u.err }
func (unreachable) Close() error                { return nil }

// SyscallConn is what the pool looks at before it hands out a connection that it has kept: this one it throws away.
func (u unreachable) SyscallConn() (syscall.RawConn, error) { return nil, u.err }

func (unreachable) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (unreachable) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (unreachable) SetDeadline(time.Time) error      { return nil }
func (unreachable) SetReadDeadline(time.Time) error  { return nil }
func (unreachable) SetWriteDeadline(time.Time) error { return nil }
