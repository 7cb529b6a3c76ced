// Runs a program for exactly as long as somebody holds our standard input open.
//
//	supervise PROGRAM [ARGUMENT...]
//
// A test starts its servers through this. When the test ends, in whatever way,
// the system closes its end of the pipe and the server ends with it: no test
// that was killed leaves a server behind. The server gets a short time to end by
// itself and is killed after that; its data is thrown away anyway.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Enough for an idle server; a kube-apiserver that lost its etcd would take
// minutes.
const grace = 2 * time.Second

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: supervise PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}

	// Ctrl-C reaches every process of the terminal at once. The servers are to
	// end when the test says so, in its order.
	signal.Ignore(syscall.SIGINT)

	server := exec.Command(os.Args[1], os.Args[2:]...)
	server.Stdout = os.Stdout
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "supervise:", err)
		os.Exit(127)
	}

	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()

	released := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(released)
	}()

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGHUP)

	select {
	case err := <-ended:
		os.Exit(code(err))
	case <-released:
	case <-stop:
	}

	_ = server.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = server.Process.Kill()
		<-ended
	}
}

// The exit code to pass on for a server that ended by itself.
func code(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	default:
		fmt.Fprintln(os.Stderr, "supervise:", err)
		return 1
	}
}
