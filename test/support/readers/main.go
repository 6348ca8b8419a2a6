// Reads bodies as servers in Go do: a line of JSON for each body comes in, and one with what was found goes out.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"mime"
	"mime/multipart"
	"os"
)

type body struct {
	ContentType string `json:"contentType"`
	Bytes       []byte `json:"bytes"`
}

type found struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Error  string `json:"error,omitempty"`
}

func readForm(one body) (read found, err error) {
	_, parameters, err := mime.ParseMediaType(one.ContentType)
	if err != nil {
		return read, err
	}
	form, err := multipart.NewReader(bytes.NewReader(one.Bytes), parameters["boundary"]).ReadForm(1 << 20)
	if err != nil {
		return read, err
	}
	if models := form.Value["model"]; len(models) > 0 {
		read.Model = models[0]
	}
	if streams := form.Value["stream"]; len(streams) > 0 {
		read.Stream = streams[0] == "true"
	}
	return read, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var one body
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		var read found
		var err error
		if one.ContentType == "application/json" {
			err = json.Unmarshal(one.Bytes, &read)
		} else {
			read, err = readForm(one)
		}
		if err != nil {
			read = found{Error: err.Error()}
		}
		if err := out.Encode(read); err != nil {
			panic(err)
		}
	}
}
