// Verifies the signature and the attestations of a folder as `cosign verify --local-image` and `cosign
// verify-attestation --local-image` do, with cosign's own package: cosign with all its clouds takes three times as long to
// build. It asks no server.
//
//	verify-signatures PUBLIC-KEY FOLDER
//
// It prints the predicate types of the attestations, one per line.
package main

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/oci"
	"github.com/sigstore/sigstore/pkg/signature"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: %s PUBLIC-KEY FOLDER", os.Args[0]))
	}
	key, err := signature.LoadVerifierFromPEMFile(os.Args[1], crypto.SHA256)
	fail(err)
	// The key is given by hand: there is no certificate, and no entry of a transparency log.
	options := &cosign.CheckOpts{SigVerifier: key, IgnoreTlog: true, IgnoreSCT: true, Offline: true}
	options.ClaimVerifier = cosign.SimpleClaimVerifier
	_, _, err = cosign.VerifyLocalImageSignatures(context.Background(), os.Args[2], options)
	fail(err)
	options.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
	attestations, _, err := cosign.VerifyLocalImageAttestations(context.Background(), os.Args[2], options)
	fail(err)
	for _, attestation := range attestations {
		predicate, err := predicateType(attestation)
		fail(err)
		fmt.Println(predicate)
	}
}

// predicateType reads what a verified attestation says, in the signed payload.
func predicateType(attestation oci.Signature) (string, error) {
	envelope := struct{ Payload string }{}
	statement := struct{ PredicateType string }{}
	content, err := attestation.Payload()
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(content, &envelope); err != nil {
		return "", err
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return "", err
	}
	err = json.Unmarshal(payload, &statement)
	return statement.PredicateType, err
}

func fail(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
