// Command direct serves the sessions and forwards of one SSH connection, over one TLS connection to the gateway. The
// gateway starts it by an exec stream and says on its stdin, in one line:
//
//	{"version":1,"address":"10.0.0.7","token":"64 hexadecimal digits"}
//
// It listens on that address and answers with one line on its stdout:
//
//	{"port":50123,"certificate":"the certificate, DER in base64"}
//
// Whoever connects and sends the 32 bytes of the token gets its frames (frames.go); then nobody else may connect. Key,
// certificate and token are made for this run and are in memory alone. It ends when that connection ends, and takes its
// programs along. The end of the exec stream ends it only before somebody has connected: so sessions outlive an API
// server that is away.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
)

const (
	version      = 1
	tokenBytes   = 32
	maxHelloLine = 4096
)

type hello struct {
	Version int    `json:"version"`
	Address string `json:"address"`
	Token   string `json:"token"`
}

type announcement struct {
	Port        int    `json:"port"`
	Certificate []byte `json:"certificate"`
}

func readHello(from *bufio.Reader) (address net.IP, token []byte, err error) {
	line, err := from.ReadSlice('\n')
	if err != nil {
		return nil, nil, errors.New("there is no line")
	}
	var said hello
	if err := json.Unmarshal(line, &said); err != nil {
		return nil, nil, errors.New("the line is no JSON")
	}
	if said.Version != version {
		return nil, nil, fmt.Errorf("the gateway speaks version %d, this program %d", said.Version, version)
	}
	token, err = hex.DecodeString(said.Token)
	address = net.ParseIP(said.Address)
	if err != nil || len(token) != tokenBytes || address == nil {
		return nil, nil, errors.New("the line lacks an address or a token")
	}
	return address, token, nil
}

// connection reads the line of a gateway, answers it, and returns the connection that the gateway then makes.
func connection(from io.Reader, to io.Writer) (*gatewayConn, error) {
	lines := bufio.NewReaderSize(from, maxHelloLine)
	address, token, err := readHello(lines)
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	listener, err := listen(address)
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	line, err := json.Marshal(announcement{Port: port, Certificate: identity.Certificate[0]})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(to, "%s\n", line); err != nil {
		return nil, err
	}
	// The gateway has given up: nobody will come with the token.
	go func() {
		io.Copy(io.Discard, lines)
		listener.Close()
	}()
	return acceptOne(listener, identity, token)
}

// sayWhy tells the gateway why it gets no connection.
func sayWhy(to io.Writer, err error) {
	fmt.Fprintf(to, "{\"error\":%q}\n", err.Error())
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "ports" {
		fmt.Fprintln(os.Stderr, servePorts(os.Args[2]))
		os.Exit(1)
	}
	// The threads that start programs must last as long as this process: see start in program.go.
	runtime.LockOSThread()
	conn, err := connection(os.Stdin, os.Stdout)
	if err != nil {
		sayWhy(os.Stdout, err)
		os.Exit(1)
	}
	served := make(chan struct{})
	go func() {
		newLink(conn, false).serve()
		close(served)
	}()
	for {
		select {
		case begin := <-starts:
			begin()
		case <-served:
			return
		}
	}
}
