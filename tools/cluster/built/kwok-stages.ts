// kwok's own stage deletes a pod at once. A kubelet says first that the containers have ended. The annotation stands for a
// program that does not end.
const PODS_THAT_END = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-end
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
    - key: '.status.phase'
      operator: 'NotIn'
      values:
      - 'Succeeded'
      - 'Failed'
    - key: '.metadata.annotations["pod-end.stage.kwok.x-k8s.io/hold"]'
      operator: 'DoesNotExist'
  next:
    statusTemplate: |
      {{ $now := Now }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          terminated:
            exitCode: 143
            finishedAt: {{ $now | Quote }}
            reason: Error
            startedAt: {{ $now | Quote }}
      {{ end }}
      phase: Failed
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-delete
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
    - key: '.status.phase'
      operator: 'In'
      values:
      - 'Succeeded'
      - 'Failed'
  next:
    delete: true
`;

/** The stages of the kwok module, with pods that end as those of a kubelet do. */
export function kwokStages(ofModule: string): string {
  const kept = ofModule.split(/^---$/m).filter((stage) => !/^ {2}name: pod-delete$/m.test(stage));
  return [...kept, PODS_THAT_END].join('\n---\n');
}
