# Steps: tested, applied only when needed, and tested again.

function New-Step {
    # Both blocks get the subject as their only argument; Test says whether nothing is left to do.
    param([string]$Name, $Subject, [scriptblock]$Test, [scriptblock]$Apply, [scriptblock]$Verify = $null)
    return [pscustomobject]@{ Name = $Name; Subject = $Subject; Test = $Test; Apply = $Apply; Verify = $Verify }
}

function Invoke-Step {
    param($Step)
    if (Test-Step -Block $Step.Test -Step $Step) {
        Write-Line "ok      $($Step.Name)"
        return
    }
    if ($Node.WhatIf) {
        Write-Line "would   $($Step.Name)"
        return
    }
    Write-Line "doing   $($Step.Name)"
    [void](& $Step.Apply $Step.Subject)
    $verify = $Step.Test
    if ($null -ne $Step.Verify) {
        $verify = $Step.Verify
    }
    if (-not (Test-Step -Block $verify -Step $Step)) {
        throw "step '$($Step.Name)' was done, and the machine does not show it"
    }
    $Node.Changed = $Node.Changed + 1
    Write-Line "done    $($Step.Name)"
}

function Test-Step {
    # Whatever else a block lets slip into its output, its last word counts.
    param([scriptblock]$Block, $Step)
    $answers = @(& $Block $Step.Subject)
    return ($answers.Count -gt 0 -and [bool]$answers[-1])
}

function Invoke-Steps {
    # Whether what follows may be done; not, when a reboot has to come first.
    param([object[]]$Steps)
    foreach ($step in $Steps) {
        Invoke-Step -Step $step
    }
    return (-not $Node.Reboot)
}
