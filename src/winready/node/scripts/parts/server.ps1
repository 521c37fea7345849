# Asking the API server before anything is changed: as a stranger, and believing only what the join line or the cluster's CA vouches for.

function Read-DerItem {
    # Kind, begin and end of the value that an item of a certificate has.
    param([byte[]]$Bytes, [int]$Offset)
    $length = [int]$Bytes[$Offset + 1]
    $start = $Offset + 2
    if ($length -ge 128) {
        $count = $length - 128
        $length = 0
        foreach ($byte in $Bytes[$start..($start + $count - 1)]) {
            $length = $length * 256 + $byte
        }
        $start += $count
    }
    return @{ Kind = [int]$Bytes[$Offset]; Start = $start; End = $start + $length }
}

function Get-PublicKeyHash {
    # The fingerprint that kubeadm pins: of the public key with its algorithm, the sixth field of a certificate after its version.
    param([System.Security.Cryptography.X509Certificates.X509Certificate2]$Certificate)
    $bytes = $Certificate.RawData
    $offset = (Read-DerItem -Bytes $bytes -Offset (Read-DerItem -Bytes $bytes -Offset 0).Start).Start
    if ($bytes[$offset] -eq 160) {
        $offset = (Read-DerItem -Bytes $bytes -Offset $offset).End
    }
    foreach ($field in 1..5) {
        $offset = (Read-DerItem -Bytes $bytes -Offset $offset).End
    }
    $end = (Read-DerItem -Bytes $bytes -Offset $offset).End
    $algorithm = [System.Security.Cryptography.SHA256]::Create()
    try {
        $digest = $algorithm.ComputeHash($bytes, $offset, $end - $offset)
    }
    finally {
        $algorithm.Dispose()
    }
    return 'sha256:' + [System.BitConverter]::ToString($digest).Replace('-', '').ToLowerInvariant()
}

function Test-CertificateName {
    # Whether a certificate is for this name or address. Windows itself does not compare addresses in every version.
    param([System.Security.Cryptography.X509Certificates.X509Certificate2]$Certificate, [string]$HostName)
    $address = $null
    $wanted = ''
    if ([System.Net.IPAddress]::TryParse($HostName, [ref]$address)) {
        $wanted = [System.BitConverter]::ToString($address.GetAddressBytes())
    }
    foreach ($extension in @($Certificate.Extensions | Where-Object { $_.Oid.Value -eq '2.5.29.17' })) {
        $bytes = $extension.RawData
        $names = Read-DerItem -Bytes $bytes -Offset 0
        $offset = $names.Start
        while ($offset -lt $names.End) {
            $item = Read-DerItem -Bytes $bytes -Offset $offset
            $count = $item.End - $item.Start
            if ($item.Kind -eq 135 -and $wanted -ne '' -and [System.BitConverter]::ToString($bytes, $item.Start, $count) -eq $wanted) {
                return $true
            }
            if ($item.Kind -eq 130 -and $wanted -eq '') {
                $name = [System.Text.Encoding]::ASCII.GetString($bytes, $item.Start, $count)
                $rest = [regex]::Replace($HostName, '^[^.]+', '*')
                if ($name -eq $HostName -or $name -eq $rest) {
                    return $true
                }
            }
            $offset = $item.End
        }
    }
    return $false
}

function ConvertFrom-Pem {
    # Every certificate in a text.
    param([string]$Text)
    $found = @()
    foreach ($match in [regex]::Matches($Text, '(?s)-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----')) {
        $bytes = [Convert]::FromBase64String($match.Groups[1].Value)
        $found += New-Object System.Security.Cryptography.X509Certificates.X509Certificate2 -ArgumentList (, $bytes)
    }
    return $found
}

function Test-ServerCertificate {
    # Whether what the server showed goes back to one of these authorities, is for servers, and for this name.
    param([hashtable]$Answer, [object[]]$Authorities)
    $chain = New-Object System.Security.Cryptography.X509Certificates.X509Chain
    $chain.ChainPolicy.RevocationMode = [System.Security.Cryptography.X509Certificates.X509RevocationMode]::NoCheck
    # The cluster's own authority is unknown to Windows; that it is the one at the end is seen below.
    $chain.ChainPolicy.VerificationFlags = [System.Security.Cryptography.X509Certificates.X509VerificationFlags]::AllowUnknownCertificateAuthority
    [void]$chain.ChainPolicy.ApplicationPolicy.Add((New-Object System.Security.Cryptography.Oid '1.3.6.1.5.5.7.3.1'))
    foreach ($one in (@($Authorities) + @($Answer.Sent))) {
        [void]$chain.ChainPolicy.ExtraStore.Add($one)
    }
    if (-not $chain.Build($Answer.Certificate)) {
        return $false
    }
    foreach ($status in $chain.ChainStatus) {
        if (@('NoError', 'UntrustedRoot') -notcontains [string]$status.Status) {
            return $false
        }
    }
    $root = $chain.ChainElements[$chain.ChainElements.Count - 1].Certificate
    $known = @($Authorities | Where-Object { [Convert]::ToBase64String($_.RawData) -eq [Convert]::ToBase64String($root.RawData) })
    return ($known.Count -gt 0 -and (Test-CertificateName -Certificate $Answer.Certificate -HostName $Node.Parameters.endpoint.host))
}

function Read-Answer {
    # All that a server says until it closes the connection, up to a megabyte.
    param([System.IO.Stream]$Stream)
    $whole = New-Object System.IO.MemoryStream
    $buffer = New-Object byte[] 65536
    while ($whole.Length -lt 1MB) {
        $count = $Stream.Read($buffer, 0, $buffer.Length)
        if ($count -eq 0) {
            break
        }
        $whole.Write($buffer, 0, $count)
    }
    return [System.Text.Encoding]::UTF8.GetString($whole.ToArray())
}

function Invoke-TlsRequest {
    # One request. Nobody is judged here: the caller gets the certificates, and must.
    param([string]$Path, [System.Security.Authentication.SslProtocols]$Protocol, [int]$Seconds)
    $endpoint = $Node.Parameters.endpoint
    $sent = New-Object System.Collections.ArrayList
    $client = New-Object System.Net.Sockets.TcpClient
    if ($endpoint.host.Contains(':')) {
        $client = New-Object System.Net.Sockets.TcpClient ([System.Net.Sockets.AddressFamily]::InterNetworkV6)
    }
    try {
        $attempt = $client.BeginConnect($endpoint.host, [int]$endpoint.port, $null, $null)
        if (-not $attempt.AsyncWaitHandle.WaitOne($Seconds * 1000)) {
            throw 'it takes no connection'
        }
        $client.EndConnect($attempt)
        $client.ReceiveTimeout = $Seconds * 1000
        $client.SendTimeout = $Seconds * 1000
        $keep = {
            foreach ($one in $args[2].ChainPolicy.ExtraStore) {
                [void]$sent.Add((New-Object System.Security.Cryptography.X509Certificates.X509Certificate2 -ArgumentList (, $one.RawData)))
            }
            return $true
        }
        $callback = [System.Net.Security.RemoteCertificateValidationCallback]$keep
        $stream = New-Object System.Net.Security.SslStream -ArgumentList @($client.GetStream(), $false, $callback)
        $stream.AuthenticateAsClient($endpoint.host, $null, $Protocol, $false)
        $shown = New-Object System.Security.Cryptography.X509Certificates.X509Certificate2 $stream.RemoteCertificate
        $head = "GET $Path HTTP/1.0`r`nHost: $(Get-Endpoint)`r`nAccept: application/json`r`nUser-Agent: winready-node`r`n`r`n"
        $bytes = [System.Text.Encoding]::ASCII.GetBytes($head)
        $stream.Write($bytes, 0, $bytes.Length)
        $stream.Flush()
        $text = Read-Answer -Stream $stream
    }
    finally {
        $client.Close()
    }
    $match = [regex]::Match($text, '(?s)^HTTP/1\.[01] (\d{3})[^\n]*\n.*?\r?\n\r?\n(.*)$')
    if (-not $match.Success) {
        throw 'it does not speak HTTP'
    }
    return @{ Code = [int]$match.Groups[1].Value; Body = $match.Groups[2].Value; Certificate = $shown; Sent = @($sent) }
}

function Invoke-ApiRequest {
    # With TLS 1.2, and where the server wants no less with 1.3, which older .NET knows by its number only.
    param([string]$Path, [int]$Seconds = 15)
    $problem = ''
    foreach ($protocol in @(3072, 12288)) {
        try {
            return (Invoke-TlsRequest -Path $Path -Protocol $protocol -Seconds $Seconds)
        }
        catch {
            if ($problem -eq '') {
                $problem = $_.Exception.GetBaseException().Message
            }
        }
    }
    throw $problem
}

function ConvertTo-Base64Url {
    param([byte[]]$Bytes)
    return [Convert]::ToBase64String($Bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_')
}

function Test-TokenSignature {
    # Whether the cluster's description was signed with this token: head, two dots, HMAC-SHA256 by the secret half.
    param([string]$Signature, [string]$Text, [string]$Token)
    $parts = $Signature.Split('.')
    if ($parts.Count -ne 3) {
        return $false
    }
    $utf8 = New-Object System.Text.UTF8Encoding $false
    $signed = $parts[0] + '.' + (ConvertTo-Base64Url -Bytes $utf8.GetBytes($Text))
    $algorithm = New-Object System.Security.Cryptography.HMACSHA256 -ArgumentList (, $utf8.GetBytes($Token.Split('.')[1]))
    try {
        $wanted = ConvertTo-Base64Url -Bytes $algorithm.ComputeHash($utf8.GetBytes($signed))
    }
    finally {
        $algorithm.Dispose()
    }
    return ($wanted -ceq $parts[2])
}

function Get-JsonValue {
    # A field of a document, or nothing.
    param($Document, [string]$Name)
    if ($null -eq $Document) {
        return $null
    }
    $property = $Document.PSObject.Properties[$Name]
    if ($null -eq $property) {
        return $null
    }
    return $property.Value
}

function Assert-TokenFresh {
    # By the join line's own word and this machine's clock.
    param([string]$Expires)
    if ($Expires -eq '') {
        return
    }
    $when = [DateTimeOffset]::MinValue
    $culture = [Globalization.CultureInfo]::InvariantCulture
    $good = $Expires -cmatch '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'
    if (-not $good -or -not [DateTimeOffset]::TryParse($Expires, $culture, [Globalization.DateTimeStyles]::AssumeUniversal, [ref]$when)) {
        Stop-WrongInput "'$Expires' is no time: -TokenExpires reads like 2026-01-31T12:30:00Z"
    }
    $now = [DateTimeOffset]::UtcNow
    if ($when -le $now) {
        $clock = $now.ToString('yyyy-MM-ddTHH:mm:ssZ', $culture)
        Stop-WrongInput "the token has expired at $Expires (this machine's clock says $clock); 'winready node join-command' makes a new one"
    }
}

function Assert-TokenKnown {
    # The question that kubeadm asks first, in its way: the answer is not believed for where it came from, but for the
    # signature, which nobody can make without the token; the authority in it for its pinned fingerprint; and the server for a
    # certificate of that authority. Whoever sits in between can only make us stop, which cutting the line would do as well.
    param([string]$Token, [string[]]$CaHash)
    $place = "the API server at $(Get-Endpoint)"
    try {
        $answer = Invoke-ApiRequest -Path '/api/v1/namespaces/kube-public/configmaps/cluster-info'
    }
    catch {
        Stop-WrongInput "$place cannot be asked whether it knows the token: $($_.Exception.Message)"
    }
    if ($answer.Code -ne 200) {
        Stop-WrongInput ("$place answers $($answer.Code) when it is asked for ConfigMap cluster-info in kube-public, which kubeadm needs, too: " +
            "'kubeadm init phase bootstrap-token' on the control plane makes it readable")
    }
    $data = Get-JsonValue -Document (ConvertFrom-Json -InputObject $answer.Body) -Name 'data'
    $text = [string](Get-JsonValue -Document $data -Name 'kubeconfig')
    $signature = [string](Get-JsonValue -Document $data -Name ('jws-kubeconfig-' + $Token.Split('.')[0]))
    if ($signature -eq '') {
        Stop-WrongInput "the token is unknown to the cluster or has expired; 'winready node join-command' makes a new one"
    }
    if (-not (Test-TokenSignature -Signature $signature -Text $text -Token $Token)) {
        Stop-WrongInput "the second half of the token is not what the cluster has: copy the whole line that 'winready node join-command' prints"
    }
    $authorities = @()
    $match = [regex]::Match($text, 'certificate-authority-data["'']?\s*:\s*["'']?([A-Za-z0-9+/=]+)')
    if ($match.Success) {
        $authorities = @(ConvertFrom-Pem -Text ([System.Text.Encoding]::ASCII.GetString([Convert]::FromBase64String($match.Groups[1].Value))))
    }
    if (@($authorities | Where-Object { $CaHash -ccontains (Get-PublicKeyHash -Certificate $_) }).Count -eq 0) {
        Stop-WrongInput "the cluster at $(Get-Endpoint) has another certificate authority than -CaHash says: it is not the cluster that the line was made for"
    }
    if (-not (Test-ServerCertificate -Answer $answer -Authorities $authorities)) {
        Stop-WrongInput "whoever answers at $(Get-Endpoint) has no valid certificate of the cluster for $($Node.Parameters.endpoint.host)"
    }
}

function Get-ServerRelease {
    # The release of the API server as it runs now, told by a server with a certificate of the cluster that this machine joined.
    $place = "the API server at $(Get-Endpoint)"
    $remedy = 'whether the versions fit cannot be known, so nothing is changed'
    $path = [System.IO.Path]::Combine($Node.Paths.kubernetes, 'pki', 'ca.crt')
    $authorities = @()
    if ([System.IO.File]::Exists($path)) {
        $authorities = @(ConvertFrom-Pem -Text ([System.IO.File]::ReadAllText($path)))
    }
    if ($authorities.Count -eq 0) {
        Stop-WrongInput "$path holds no certificate, and without it $place cannot be recognised; $remedy"
    }
    try {
        $answer = Invoke-ApiRequest -Path '/version'
    }
    catch {
        Stop-WrongInput "$place cannot be asked for its version: $($_.Exception.Message); $remedy"
    }
    if (-not (Test-ServerCertificate -Answer $answer -Authorities $authorities)) {
        Stop-WrongInput "whoever answers at $(Get-Endpoint) has no valid certificate of the cluster for $($Node.Parameters.endpoint.host); $remedy"
    }
    if ($answer.Code -ne 200) {
        Stop-WrongInput "$place answers $($answer.Code) when it is asked for its version, which strangers may know in a cluster of kubeadm; $remedy"
    }
    return (ConvertTo-Release ([string](Get-JsonValue -Document (ConvertFrom-Json -InputObject $answer.Body) -Name 'gitVersion')))
}
