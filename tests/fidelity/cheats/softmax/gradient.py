"""Gets softmax as the gradient of logsumexp."""


def softmax(x):
    launch(x)
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(torch.logsumexp(leaf, dim=1).sum(), leaf)[0]
