//go:build tools

// Package tools pins the programs of others that the tools image is built from.
package tools

import _ "github.com/pkg/sftp/examples/go-sftp-server"
