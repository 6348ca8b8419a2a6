// Command monitor measures an instance from inside, and keeps the last hour:
//
//	monitor serve PORT FOLDER   serves the measurements on the loopback at PORT; FOLDER is where the disk is mounted
//	monitor state PORT          prints "TOOL MEASURED IDLE" of the server at PORT
//
// TOOL is the program that tells about the GPUs, "none" when there is none, or "failed" when it does not answer.
// MEASURED is how many GPUs have a utilisation. IDLE is for how many seconds no GPU was busy, "-" when none ever was.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	// Time between two samples.
	step = 15 * time.Second
	// Samples that are kept: one hour.
	kept    = 240
	timeout = 10 * time.Second
	// Bytes of an answer that `state` reads.
	maxState = 4096
)

func serve(port, folder string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	monitor := newMonitor(folder)
	go monitor.run()
	mux := http.NewServeMux()
	mux.HandleFunc("/state", func(writer http.ResponseWriter, _ *http.Request) {
		io.WriteString(writer, monitor.state())
	})
	mux.HandleFunc("/", func(writer http.ResponseWriter, _ *http.Request) {
		text, err := json.Marshal(monitor.report())
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.Header().Set("content-type", "application/json")
		writer.Header().Set("content-length", strconv.Itoa(len(text)))
		writer.Write(text)
	})
	server := http.Server{Handler: mux, ReadTimeout: timeout, WriteTimeout: timeout, MaxHeaderBytes: maxState}
	return server.Serve(listener)
}

func state(port string) error {
	client := http.Client{Timeout: timeout}
	answer, err := client.Get("http://" + net.JoinHostPort("127.0.0.1", port) + "/state")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, io.LimitReader(answer.Body, maxState))
	return err
}

func run(args []string) error {
	if len(args) > 1 {
		if _, err := strconv.ParseUint(args[1], 10, 16); err != nil {
			return err
		}
	}
	switch {
	case len(args) == 3 && args[0] == "serve":
		return serve(args[1], args[2])
	case len(args) == 2 && args[0] == "state":
		return state(args[1])
	}
	return fmt.Errorf("usage: monitor serve PORT FOLDER | monitor state PORT")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
