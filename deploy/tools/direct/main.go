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
		return nil, nil, errors.New("no line on stdin")
	}
	var said hello
	if err := json.Unmarshal(line, &said); err != nil {
		return nil, nil, errors.New("the line on stdin is no JSON")
	}
	if said.Version != version {
		return nil, nil, fmt.Errorf("the gateway speaks version %d, this program %d", said.Version, version)
	}
	token, err = hex.DecodeString(said.Token)
	address = net.ParseIP(said.Address)
	if err != nil || len(token) != tokenBytes || address == nil {
		return nil, nil, errors.New("the line on stdin lacks an address or a token")
	}
	return address, token, nil
}

func connection() (*gatewayConn, error) {
	stdin := bufio.NewReaderSize(os.Stdin, maxHelloLine)
	address, token, err := readHello(stdin)
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
	if _, err := fmt.Printf("%s\n", line); err != nil {
		return nil, err
	}
	// The gateway has given up: nobody will come with the token.
	go func() {
		io.Copy(io.Discard, stdin)
		listener.Close()
	}()
	return acceptOne(listener, identity, token)
}

func main() {
	// The threads that start programs must last as long as this process: see start in program.go.
	runtime.LockOSThread()
	conn, err := connection()
	if err != nil {
		fmt.Printf("{\"error\":%q}\n", err.Error())
		os.Exit(1)
	}
	served := make(chan struct{})
	go func() {
		newLink(conn).serve()
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
