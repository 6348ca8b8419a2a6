# Rents a GPU instance with Terraform or OpenTofu, by the provider for Kubernetes and a kubeconfig:
#
#   terraform init
#   terraform apply -var "public_key=$(cat ~/.ssh/id_ed25519.pub)"
#   terraform destroy      # gives the GPU back
#
# The resources of Berth must be installed in the cluster before `plan`: the provider reads their schemas from it.

terraform {
  required_version = ">= 1.5"
  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.27"
    }
  }
}

provider "kubernetes" {
  config_path = "~/.kube/config"
}

variable "namespace" {
  description = "Your namespace: a tenant of Berth."
  type        = string
  default     = "default"
}

variable "public_key" {
  description = "One line of a .pub file. Its private half opens the instance."
  type        = string
}

variable "gpu" {
  description = "GPU product, as `kubectl get gpupools` shows it."
  type        = string
  default     = "NVIDIA-H100-80GB-HBM3"
}

resource "kubernetes_manifest" "key" {
  manifest = {
    apiVersion = "berth.dev/v1alpha1"
    kind       = "SSHKey"
    metadata = {
      name      = "terraform"
      namespace = var.namespace
    }
    spec = {
      displayName = "terraform"
      publicKey   = var.public_key
    }
  }
}

resource "kubernetes_manifest" "instance" {
  manifest = {
    apiVersion = "berth.dev/v1alpha1"
    kind       = "GPUInstance"
    metadata = {
      name      = "training"
      namespace = kubernetes_manifest.key.manifest.metadata.namespace
    }
    spec = {
      displayName = "training"
      gpu = {
        product = var.gpu
        count   = 1
      }
      diskGb      = 64
      env         = [{ name = "GREETING", value = "hello" }]
      ports       = [{ containerPort = 8000, protocol = "TCP" }]
      maxDuration = "12h"
      # Terraform waits: an instance that finds no place keeps its place in the line.
      onNoCapacity = "Queue"
    }
  }

  # Until a login works.
  wait {
    condition {
      type   = "Ready"
      status = "True"
    }
  }

  timeouts {
    create = "30m"
    delete = "10m"
  }
}

data "kubernetes_resource" "instance" {
  api_version = "berth.dev/v1alpha1"
  kind        = "GPUInstance"
  metadata {
    name      = "training"
    namespace = var.namespace
  }
  depends_on = [kubernetes_manifest.instance]
}

output "ssh" {
  description = "User, host and port for SSH, and the line for known_hosts."
  value       = data.kubernetes_resource.instance.object.status.ssh
}
