$a = @(1,2.5,"x$(1+1)"); function f($n = 3) { param($m) if ($n -gt 2 -and $a -contains 1) { return "$n" } }
foreach ($i in 1..3) { f $i }; try { Get-Content C:\nope -ErrorAction Stop } catch [System.Exception] { $_.Exception.Message } finally { 1 }
$h = @{A=1; b="x"}; $h.A += 2; $h | ConvertTo-Json; "node-17" -match '(?<os>\w+)-(\d+)'; $Matches.os; [guid]::NewGuid() | Out-Null
switch -regex ("abc") { "^a" { "yes" } default { "no" } }; Get-ChildItem C:\ | Where-Object { $_.Name -like "W*" } | Select-Object -First 1 -ExpandProperty Name; @'
here
'@; $x = 8MB; $a[0..1]; Write-Output (Get-Date -ErrorAction SilentlyContinue) 2>&1 > C:\o.txt
