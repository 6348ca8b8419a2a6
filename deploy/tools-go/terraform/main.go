// Reads a folder of Terraform configuration and prints the manifests that its kubernetes_manifest resources hand to the
// API server, one JSON object per line, in the order in which Terraform applies them. Variables come as NAME=VALUE.
//
// The grammar, the blocks, the arguments and the references are checked as Terraform does. What the provider itself does
// with a manifest is left to the API server.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func attributes(names ...string) (all []hcl.AttributeSchema) {
	for _, name := range names {
		all = append(all, hcl.AttributeSchema{Name: name})
	}
	return all
}

var (
	file = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "terraform"},
		{Type: "provider", LabelNames: []string{"name"}},
		{Type: "variable", LabelNames: []string{"name"}},
		{Type: "resource", LabelNames: []string{"type", "name"}},
		{Type: "data", LabelNames: []string{"type", "name"}},
		{Type: "output", LabelNames: []string{"name"}},
	}}
	variable = &hcl.BodySchema{
		Attributes: attributes("type", "description", "default", "nullable", "sensitive"),
		Blocks:     []hcl.BlockHeaderSchema{{Type: "validation"}},
	}
	// The arguments of kubernetes_manifest in version 2 and 3 of the provider.
	manifest = &hcl.BodySchema{
		Attributes: append(attributes("computed_fields", "depends_on", "count", "for_each", "provider"),
			hcl.AttributeSchema{Name: "manifest", Required: true}),
		Blocks: []hcl.BlockHeaderSchema{{Type: "wait"}, {Type: "timeouts"}, {Type: "field_manager"}, {Type: "lifecycle"}},
	}
	wait = &hcl.BodySchema{
		Attributes: attributes("fields", "rollout"),
		Blocks:     []hcl.BlockHeaderSchema{{Type: "condition"}},
	}
	condition = &hcl.BodySchema{Attributes: attributes("type", "status")}
	output    = &hcl.BodySchema{Attributes: append(attributes("description", "sensitive", "depends_on"),
		hcl.AttributeSchema{Name: "value", Required: true})}
	timeouts = &hcl.BodySchema{Attributes: attributes("create", "update", "delete")}
)

// Ends the program with what is wrong in the configuration.
func check(diagnostics hcl.Diagnostics) {
	if !diagnostics.HasErrors() {
		return
	}
	for _, one := range diagnostics {
		fmt.Fprintln(os.Stderr, one.Error())
	}
	os.Exit(1)
}

func content(body hcl.Body, schema *hcl.BodySchema) *hcl.BodyContent {
	found, diagnostics := body.Content(schema)
	check(diagnostics)
	return found
}

func parse(folder string) (blocks hcl.Blocks) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil || len(paths) == 0 {
		fmt.Fprintln(os.Stderr, folder+" has no .tf file")
		os.Exit(1)
	}
	parser := hclparse.NewParser()
	for _, path := range paths {
		parsed, diagnostics := parser.ParseHCLFile(path)
		check(diagnostics)
		blocks = append(blocks, content(parsed.Body, file).Blocks...)
	}
	return blocks
}

// The variables: what the command line gives, else the default. One without either is an error, as Terraform would ask.
func variables(blocks hcl.Blocks, given map[string]string) map[string]cty.Value {
	values := map[string]cty.Value{}
	for _, block := range blocks.OfType("variable") {
		name := block.Labels[0]
		found := content(block.Body, variable)
		if text, ok := given[name]; ok {
			values[name] = cty.StringVal(text)
		} else if attribute, ok := found.Attributes["default"]; ok {
			value, diagnostics := attribute.Expr.Value(nil)
			check(diagnostics)
			values[name] = value
		} else {
			fmt.Fprintf(os.Stderr, "the variable %s has no value\n", name)
			os.Exit(1)
		}
	}
	return values
}

// Checks the blocks inside of a resource.
func checkWaits(found *hcl.BodyContent) {
	for _, block := range found.Blocks.OfType("wait") {
		for _, inner := range content(block.Body, wait).Blocks {
			content(inner.Body, condition)
		}
	}
	for _, block := range found.Blocks.OfType("timeouts") {
		content(block.Body, timeouts)
	}
}

func main() {
	given := map[string]string{}
	for _, argument := range os.Args[2:] {
		name, value, _ := strings.Cut(argument, "=")
		given[name] = value
	}
	blocks := parse(os.Args[1])
	checkOutputs(blocks)
	known := map[string]cty.Value{"var": cty.ObjectVal(variables(blocks, given))}
	objects := map[string]cty.Value{}
	waiting := blocks.OfType("resource")
	for len(waiting) > 0 {
		var later hcl.Blocks
		for _, block := range waiting {
			if block.Labels[0] != "kubernetes_manifest" {
				fmt.Fprintf(os.Stderr, "%s: only kubernetes_manifest is known here\n", block.Labels[0])
				os.Exit(1)
			}
			found := content(block.Body, manifest)
			checkWaits(found)
			if !ready(found, objects) {
				later = append(later, block)
				continue
			}
			value, diagnostics := found.Attributes["manifest"].Expr.Value(&hcl.EvalContext{Variables: known})
			check(diagnostics)
			text, err := json.Marshal(ctyjson.SimpleJSONValue{Value: value})
			if err != nil {
				panic(err)
			}
			fmt.Println(string(text))
			objects[block.Labels[1]] = cty.ObjectVal(map[string]cty.Value{"manifest": value, "object": value})
			known["kubernetes_manifest"] = cty.ObjectVal(objects)
		}
		if len(later) == len(waiting) {
			fmt.Fprintln(os.Stderr, "a resource refers to one that is not there, or to itself")
			os.Exit(1)
		}
		waiting = later
	}
}

// Checks that what the outputs show is declared: resources, data sources and variables.
func checkOutputs(blocks hcl.Blocks) {
	declared := map[string]bool{}
	for _, block := range blocks {
		switch block.Type {
		case "resource":
			declared[block.Labels[0]+"."+block.Labels[1]] = true
		case "data":
			declared["data."+block.Labels[0]+"."+block.Labels[1]] = true
		case "variable":
			declared["var."+block.Labels[0]] = true
		}
	}
	for _, block := range blocks.OfType("output") {
		for _, reference := range content(block.Body, output).Attributes["value"].Expr.Variables() {
			name := reference.RootName()
			for index := 1; index < len(reference) && !declared[name]; index++ {
				if step, ok := reference[index].(hcl.TraverseAttr); ok {
					name += "." + step.Name
				}
			}
			if !declared[name] {
				fmt.Fprintf(os.Stderr, "the output %s shows %s, which is not there\n", block.Labels[0], name)
				os.Exit(1)
			}
		}
	}
}

// Whether all that the resource refers to, in its manifest or by depends_on, is there.
func ready(found *hcl.BodyContent, objects map[string]cty.Value) bool {
	for _, attribute := range found.Attributes {
		for _, reference := range attribute.Expr.Variables() {
			if reference.RootName() != "kubernetes_manifest" {
				continue
			}
			step, ok := reference[1].(hcl.TraverseAttr)
			if _, there := objects[step.Name]; !ok || !there {
				return false
			}
		}
	}
	return true
}
