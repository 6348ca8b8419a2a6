package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	// The dynamic ports of RFC 6335. Network policies let the gateway reach these of an instance and no others.
	firstPort = 49152
	lastPort  = 65535
	portTries = 64
	// How long the listener waits for the gateway, which connects at once.
	acceptTime = 10 * time.Second
	// How long a client may take for the handshake and the token.
	proofTime = 5 * time.Second
	// Connections that are taken before the gateway's. Then the listener closes, and exec carries the session.
	maxStrangers = 16
	// Bytes of one client before its token was checked.
	maxProofBytes = 16 * 1024
)

// newIdentity makes a key and its certificate. The gateway trusts this certificate alone, so no date has to end it.
func newIdentity() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "berth"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func listen(address net.IP) (*net.TCPListener, error) {
	var last error
	for range portTries {
		offset, err := rand.Int(rand.Reader, big.NewInt(lastPort-firstPort+1))
		if err != nil {
			return nil, err
		}
		port := firstPort + int(offset.Int64())
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: address, Port: port})
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, last
}

// boundedConn gives a client few bytes until it is trusted. From then on it gathers what is written until flush: TLS writes
// record by record, and each piece of 16 KiB would cost both sides a call.
type boundedConn struct {
	net.Conn
	left    int
	trusted bool
	waiting []byte
}

func (c *boundedConn) Write(bytes []byte) (int, error) {
	if !c.trusted {
		return c.Conn.Write(bytes)
	}
	c.waiting = append(c.waiting, bytes...)
	return len(bytes), nil
}

func (c *boundedConn) flush() error {
	_, err := c.Conn.Write(c.waiting)
	c.waiting = c.waiting[:0]
	return err
}

func (c *boundedConn) Read(into []byte) (int, error) {
	if c.trusted {
		return c.Conn.Read(into)
	}
	if c.left <= 0 {
		return 0, errors.New("too many bytes before the token")
	}
	count, err := c.Conn.Read(into[:min(len(into), c.left)])
	c.left -= count
	return count, err
}

// gatewayConn is a connection that has sent the token.
type gatewayConn struct {
	*tls.Conn
	below *boundedConn
	mu    sync.Mutex
}

// writeFrame writes a frame in one piece, whoever else writes.
func (c *gatewayConn) writeFrame(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.Conn.Write(frame); err != nil {
		return err
	}
	return c.below.flush()
}

// proven does the handshake and reads the token. It answers nil for a client that is not the gateway.
func proven(raw net.Conn, config *tls.Config, token []byte) *gatewayConn {
	raw.SetDeadline(time.Now().Add(proofTime))
	bounded := &boundedConn{Conn: raw, left: maxProofBytes}
	conn := tls.Server(bounded, config)
	given := make([]byte, len(token))
	if _, err := io.ReadFull(conn, given); err != nil || subtle.ConstantTimeCompare(given, token) != 1 {
		raw.Close()
		return nil
	}
	bounded.trusted = true
	raw.SetDeadline(time.Time{})
	return &gatewayConn{Conn: conn, below: bounded}
}

// acceptOne answers with the first connection that sends the token. Each of the others gets five seconds and 16 KiB.
func acceptOne(listener *net.TCPListener, identity tls.Certificate, token []byte) (*gatewayConn, error) {
	defer listener.Close()
	listener.SetDeadline(time.Now().Add(acceptTime))
	config := &tls.Config{
		Certificates:                []tls.Certificate{identity},
		MinVersion:                  tls.VersionTLS13,
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}
	winner := make(chan *gatewayConn, 1)
	failed := make(chan error, 1)
	go func() {
		for range maxStrangers {
			raw, err := listener.Accept()
			if err != nil {
				failed <- errors.New("the gateway did not connect")
				return
			}
			go func() {
				conn := proven(raw, config, token)
				if conn == nil {
					return
				}
				select {
				case winner <- conn:
				default:
					conn.Close()
				}
			}()
		}
		// The gateway may be the last of them, and takes no longer than this for its proof.
		time.Sleep(proofTime)
		failed <- errors.New("too many connections without the token")
	}()
	select {
	case conn := <-winner:
		return conn, nil
	case err := <-failed:
		select {
		case conn := <-winner:
			return conn, nil
		default:
			return nil, err
		}
	}
}
